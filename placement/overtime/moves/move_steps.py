"""Steps of a move, none of which endangers committed data; and when a move to a plan pays.

    add a learner → it catches up → promote it → hand over the leadership → demote → remove

New replicas come first and old ones go last. Voters come and go one at a time, so that quorums of
consecutive sets meet. The leader is a voter at every moment. The order of promotions and demotions
is a shortest one that keeps what both ends keep (number of voters, and domains that may be lost) if
any order does; other replicas vote for a while if this helps. A promise that cannot be kept is
named at the step that breaks it. A database may stay at every prefix for any time.

A commit waits for m of v voters, an election for e. Within one set of voters every commit must be
seen by every election, m + e > v. Across a change from V to V', while some servers still count by
the old set, a quorum of either must meet one of the other:

    m + e' > |V ∪ V'|        m' + e > |V ∪ V'|

Majorities obey both when one voter comes or goes. Flexible quorums do too if they grow by one with
every second voter, m(w) = m + ⌈(w − v)/2⌉ and e alike: the sum of m(w) and e(w+1) is then at least
w + 2. If two configurations do not lie on one such line, the walk goes through majorities. The
quorums are changed at either end while the voters stay: first those that grow, then those that
shrink.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from placement.errors import require
from placement.evaluation.moves import MoveCosts, Moves, RoleChanges, changes
from placement.evaluation.objective import quorum_size, score_of
from placement.evaluation.score import score
from placement.model.configuration import Configuration
from placement.model.constraints import GroupRule, majority
from placement.plan import Plan
from placement.problem import Problem
from placement.text.text_tables import ValueColumn, ValueTable

Kind = Literal[
    "add-learner", "catch-up", "set-quorums", "promote", "move-leader", "demote", "remove"
]
"""Kind of action of a step."""


@dataclass(frozen=True, slots=True)
class MoveState:
    """A configuration on the way."""

    leader: int | None  #: site index; None where no operation needs a leader
    #: `voters`, `replicas`: site indices, ascending; replicas that do not vote are learners (they
    #: may serve reads)
    voters: tuple[int, ...]
    replicas: tuple[int, ...]
    behind: tuple[int, ...]  #: replicas that are still catching up
    quorums: QuorumSizes  #: votes that commits and elections wait for

    @property
    def configuration(self) -> Configuration:
        """The roles; without a leader the first voter stands for all."""
        leader = self.voters[0] if self.leader is None else self.leader
        return Configuration.of(leader, self.voters, self.replicas)


@dataclass(frozen=True, slots=True)
class MoveStep:
    """Single step of a move."""

    kind: Kind  #: what to do
    site: int | None  #: where; None for a change of quorum sizes
    after: MoveState  #: the stage it leads to
    broken: tuple[str, ...] = ()  #: what both ends keep and this stage does not, in words


def steps_between(
    problem: Problem, before: Configuration, after: Configuration
) -> tuple[MoveStep, ...]:
    """Return the steps between two configurations of a problem, guarded by what both keep of it.

    Replicas that may vote by the rules of the problem may help out as voters. Rules for replicas
    (their number, caps, the budget) are not kept on the way: old and new replicas stand side by
    side until the old ones are removed.
    """
    may_vote = problem.rules.may_vote
    held = set(before.replicas) | set(after.replicas)
    return safe_steps(
        before,
        after,
        start=quorums_of(problem, before),
        end=quorums_of(problem, after),
        guards=common_guards(problem, (before, after)),
        helpers=[site for site in sorted(held) if may_vote[site]],
    )


def safe_steps(
    before: Configuration,
    after: Configuration,
    *,
    start: QuorumSizes | None = None,
    end: QuorumSizes | None = None,
    guards: Sequence[Guard] | None = None,
    helpers: Sequence[int] = (),
) -> tuple[MoveStep, ...]:
    """Return the steps from one configuration to another.

    Parameters
    ----------
    before, after
        The ends.
    start, end
        Their quorums; None: majorities.
    guards
        What every stage should keep; None: as many voters may be lost as at the worse end.
    helpers
        Replicas of either end that may vote for a while, where that keeps a guard.

    Raises
    ------
    InputError
        When the quorums of an end are not safe in themselves.

    Notes
    -----
    See :func:`shortest_change_sequence` for the cost of the search. When it gives up (dozens of
    voters that change), promotions and demotions alternate, and the steps still
    say what breaks.
    """
    quorums = start or QuorumSizes.majorities(len(before.voters))
    target = end or QuorumSizes.majorities(len(after.voters))
    if guards is None:
        least = min(
            voters_to_spare(len(before.voters), quorums), voters_to_spare(len(after.voters), target)
        )
        guards = (loss_guard(least),)
    rule = quorum_path(len(before.voters), quorums, len(after.voters), target)
    stage = MoveState(
        before.leader, tuple(sorted(before.voters)), tuple(sorted(before.replicas)), (), quorums
    )
    steps: list[MoveStep] = []

    def take(kind: Kind, site: int | None, **changes: object) -> None:
        nonlocal stage
        stage = replace(stage, **changes)  # type: ignore[arg-type]  # fields of MoveState by name
        words = (guard(stage.voters, stage.quorums) for guard in guards)
        steps.append(MoveStep(kind, site, stage, tuple(text for text in words if text)))

    for site in sorted(set(after.replicas) - set(before.replicas)):
        held = tuple(sorted((*stage.replicas, site)))
        take("add-learner", site, replicas=held, behind=(site,))
        take("catch-up", site, behind=())

    def broken(voters: Sequence[int], quorums: QuorumSizes) -> int:
        return sum(guard(voters, quorums) is not None for guard in guards)

    moves: tuple[VoterChange, ...] = ()
    if before.leader != after.leader or set(before.voters) != set(after.voters):
        found = shortest_change_sequence(before, after, rule, broken)
        others = set(helpers) - set(before.voters) - set(after.voters)
        if others and (found is None or found[0]):
            helped = shortest_change_sequence(before, after, rule, broken, sorted(others))
            if helped is not None and (found is None or helped[0] < found[0]):
                found = helped
        moves = _alternating(before, after) if found is None else found[1]
    if moves:
        for sizes in resizing_steps(stage.quorums, rule(len(stage.voters))):
            take("set-quorums", None, quorums=sizes)
    for move in moves:
        voters = tuple(sorted(move.after.voters))
        take(
            move.kind,
            move.site,
            leader=move.after.leader,
            voters=voters,
            quorums=stage.quorums if move.kind == "move-leader" else rule(len(voters)),
        )
    for sizes in resizing_steps(stage.quorums, target):
        take("set-quorums", None, quorums=sizes)
    for site in sorted(set(before.replicas) - set(after.replicas)):
        take("remove", site, replicas=tuple(r for r in stage.replicas if r != site))
    return tuple(steps)


def _alternating(before: Configuration, after: Configuration) -> tuple[VoterChange, ...]:
    """Promote one, demote one; the leadership goes as soon as the new leader votes."""
    state = VoterState(frozenset(before.voters), before.leader)
    coming = sorted(set(after.voters) - state.voters, key=lambda site: (site != after.leader, site))
    # the old leader goes last, when another site leads
    going = sorted(state.voters - set(after.voters), key=lambda site: (site == before.leader, site))
    moves: list[VoterChange] = []
    while state != VoterState(frozenset(after.voters), after.leader):
        if state.leader != after.leader and after.leader in state.voters:
            state = VoterState(state.voters, after.leader)
            moves.append(VoterChange("move-leader", after.leader, state))
        elif coming and (len(coming) >= len(going) or len(state.voters) <= len(before.voters)):
            site = coming.pop(0)
            state = VoterState(state.voters | {site}, state.leader)
            moves.append(VoterChange("promote", site, state))
        else:
            site = going.pop(0)
            state = VoterState(state.voters - {site}, state.leader)
            moves.append(VoterChange("demote", site, state))
    return tuple(moves)


def step_text(step: MoveStep, sites: Sequence[str]) -> str:
    """Return a step as a sentence, with names."""
    name = "" if step.site is None else sites[step.site]
    commit, elect = step.after.quorums
    votes = f"{len(step.after.voters)} voters"
    if step.after.leader is not None:
        votes += f", commits wait for {commit}, elections for {elect}"
    words = {
        "add-learner": f"add a learner at {name}",
        "catch-up": f"wait until {name} has caught up",
        "set-quorums": f"set the quorums: {votes}",
        "promote": f"promote {name} to a voter: {votes}",
        "move-leader": f"hand the leadership over to {name}",
        "demote": f"demote {name} to a learner: {votes}",
        "remove": f"remove the replica at {name}",
    }[step.kind]
    return words + "".join(f" [{text}]" for text in step.broken)


def step_document(step: MoveStep, sites: Sequence[str]) -> Mapping[str, object]:
    """Return a step as JSON values, with names."""
    after = step.after
    return {
        "step": step.kind,
        "site": None if step.site is None else sites[step.site],
        "leader": None if after.leader is None else sites[after.leader],
        "voters": [sites[site] for site in after.voters],
        "replicas": [sites[site] for site in after.replicas],
        "commit": after.quorums.commit,
        "elect": after.quorums.elect,
        "broken": list(step.broken),
        "text": step_text(step, sites),
    }


class QuorumSizes(NamedTuple):
    """Votes that a commit and an election wait for."""

    commit: int
    elect: int

    @classmethod
    def majorities(cls, voters: int) -> QuorumSizes:
        """Return majorities for commits and for elections."""
        return cls(majority(voters), majority(voters))


SizeRule = Callable[[int], QuorumSizes]
"""Quorums by number of voters, for sets that are passed through."""


def quorums_of(problem: Problem, configuration: Configuration) -> QuorumSizes:
    """Quorums of a configuration: majorities, or the problem's m and its election.

    A flexible m goes with elections of v − m + 1, the fewest that meet every commit.
    """
    voters = len(configuration.voters)
    if problem.quorum is None:
        return QuorumSizes.majorities(voters)
    commit = quorum_size(problem, configuration)
    return QuorumSizes(commit, voters - commit + 1)


def quorums_intersect(voters: int, quorums: QuorumSizes) -> bool:
    """Return True when every election meets every commit, and the voters can give both."""
    commit, elect = quorums
    return 1 <= commit <= voters and 1 <= elect <= voters and commit + elect > voters


def resizing_steps(quorums: QuorumSizes, to: QuorumSizes) -> tuple[QuorumSizes, ...]:
    """Quorums to pass through, `to` included, with the voters standing still; none when equal.

    >>> resizing_steps(QuorumSizes(2, 4), QuorumSizes(3, 3))
    (QuorumSizes(commit=3, elect=4), QuorumSizes(commit=3, elect=3))
    """
    if quorums == to:
        return ()
    above = QuorumSizes(max(quorums.commit, to.commit), max(quorums.elect, to.elect))
    return tuple(q for q in dict.fromkeys((above, to)) if q != quorums)


def quorum_path(voters: int, start: QuorumSizes, voters_after: int, end: QuorumSizes) -> SizeRule:
    """Return the quorums to use on the way between two numbers of voters.

    The rule gives `start` and `end` at the two ends when they lie on one line, and majorities
    otherwise; quorums that a size cannot give are for the caller to skip
    (:func:`quorums_intersect`). An end that is not safe in itself is refused.
    """
    for field, size, quorums in (("start", voters, start), ("end", voters_after, end)):
        words = (
            f"a commit of {quorums.commit} and an election of {quorums.elect} among "
            f"{size} voters need not meet"
        )
        expected = f"quorums of 1 to {size} that add up to more than {size}"
        require(quorums_intersect(size, quorums), field, words, tuple(quorums), expected)

    def line(size: int) -> QuorumSizes:
        more = -((voters - size) // 2)  # ⌈(size − voters)/2⌉
        return QuorumSizes(start.commit + more, start.elect + more)

    ends_are_majorities = start == QuorumSizes.majorities(voters) and end == QuorumSizes.majorities(
        voters_after
    )
    passed = range(min(voters, voters_after), max(voters, voters_after) + 2)
    if (
        not ends_are_majorities
        and line(voters_after) == end
        and all(quorums_intersect(size, line(size)) for size in passed)
    ):
        return line
    return QuorumSizes.majorities


def voters_to_spare(voters: int, quorums: QuorumSizes) -> int:
    """Return how many voters may be lost with both a commit and an election still possible."""
    return voters - max(quorums)


Guard = Callable[[Sequence[int], QuorumSizes], str | None]
"""Voters, quorums -> what is broken, in words, or None."""


def loss_guard(least: int) -> Guard:
    """Require a quorum after the loss of any so many voters."""

    def broken(voters: Sequence[int], quorums: QuorumSizes) -> str | None:
        left = voters_to_spare(len(voters), quorums)
        return None if left >= least else f"only {left} voters may be lost, not {least}"

    return broken


def survive_guard(level: str, labels: Sequence[str | None]) -> Guard:
    """Require a quorum after the loss of any one domain; a site without a label is one."""

    def broken(voters: Sequence[int], quorums: QuorumSizes) -> str | None:
        held = Counter(labels[v] for v in voters if labels[v] is not None)
        most = max([*held.values(), 1], default=1)
        if len(voters) - most >= max(quorums):
            return None
        worst = next((name for name, count in held.items() if count == most), "a site")
        return f"the loss of {worst} ({level}) would stop commits or elections"

    return broken


def spread_guard(rule: GroupRule) -> Guard:
    """Require a diversity rule of the problem for voters."""
    return lambda voters, _: None if rule.satisfied(tuple(voters)) else f"not kept: {rule.why}"


def common_guards(problem: Problem, ends: Sequence[Configuration]) -> tuple[Guard, ...]:
    """Return the guards that all of `ends` keep, and that every step between them should keep.

    They come of the problem's `survive` and its rules for voters.
    """
    guards: list[Guard] = []
    if problem.survive is not None:
        # Its group is a cap for v voters and m votes; on the way both change, the meaning does not.
        guards.append(survive_guard(problem.survive, problem.instance.labels(problem.survive)))
    guards.extend(spread_guard(group) for group in problem.rules.of("voters") if group.rule)
    quorums = [quorums_of(problem, end) for end in ends]
    kept = [
        guard
        for guard in guards
        if not any(guard(e.voters, q) for e, q in zip(ends, quorums, strict=True))
    ]
    least = min(voters_to_spare(len(e.voters), q) for e, q in zip(ends, quorums, strict=True))
    return (loss_guard(least), *kept)


NODE_LIMIT = 50_000
"""States after which the search gives up and the caller takes a fixed order."""


class VoterState(NamedTuple):
    """Voters and leader of a configuration."""

    voters: frozenset[int]
    leader: int


class VoterChange(NamedTuple):
    """Change of one voter or of the leader, and the state after it."""

    kind: Literal["promote", "move-leader", "demote"]
    site: int
    after: VoterState


def shortest_change_sequence(
    before: Configuration,
    after: Configuration,
    rule: SizeRule,
    broken: Callable[[Sequence[int], QuorumSizes], int],
    helpers: Sequence[int] = (),
) -> tuple[int, tuple[VoterChange, ...]] | None:
    """Return a way with the fewest broken guards, then the fewest steps, of `NODE_LIMIT` states.

    Only leader and voters of the ends matter; `rule` gives the quorums by number of voters,
    `broken` how many guards a state breaks, and `helpers` are other sites that may vote for a
    while. The guards are summed over the states of the way. None: no way was found in time.

    A* over (voters, leader): the number of open changes bounds the number of steps. Sets of voters
    have between one fewer than the smaller end and one more than the larger. Without guards that
    bite it visits little more than the way; at worst 2^(sites that change + helpers) states.
    """
    start = VoterState(frozenset(before.voters), before.leader)
    goal = VoterState(frozenset(after.voters), after.leader)
    sites = sorted(start.voters | goal.voters | set(helpers))
    fewest = max(1, min(len(start.voters), len(goal.voters)) - 1)
    most = max(len(start.voters), len(goal.voters)) + 1
    leaders = {start.leader, goal.leader}
    tick = itertools.count()  # then what was found first: promotions before demotions
    cost: dict[VoterState, tuple[int, int]] = {start: (0, 0)}
    came: dict[VoterState, tuple[VoterState, VoterChange]] = {}
    left = _left(start, goal)
    queue = [((0, left, left), next(tick), start)]  # of equals, the one nearest to the goal
    closed: set[VoterState] = set()
    while queue:
        _, _, state = heapq.heappop(queue)
        if state in closed:
            continue
        if state == goal:
            hurt, moves = cost[state][0], list[VoterChange]()
            while state in came:
                state, move = came[state]
                moves.insert(0, move)
            return hurt, tuple(moves)
        closed.add(state)
        if len(closed) > NODE_LIMIT:
            return None
        hurt, steps = cost[state]
        for move in _moves(state, sites, leaders):
            size = len(move.after.voters)
            quorums = rule(size)
            if not fewest <= size <= most or not quorums_intersect(size, quorums):
                continue
            # the quorums of both sets of voters must meet, counted in their union
            union, before_it = len(state.voters | move.after.voters), rule(len(state.voters))
            if min(before_it.commit + quorums.elect, quorums.commit + before_it.elect) <= union:
                continue
            worse = broken(sorted(move.after.voters), quorums)
            total = (hurt + worse, steps + 1)
            if move.after not in cost or total < cost[move.after]:
                cost[move.after] = total
                came[move.after] = (state, move)
                left = _left(move.after, goal)
                estimate = (total[0], total[1] + left, left)
                heapq.heappush(queue, (estimate, next(tick), move.after))
    return None


def _left(state: VoterState, goal: VoterState) -> int:
    return len(state.voters ^ goal.voters) + (state.leader != goal.leader)


def _moves(state: VoterState, sites: Sequence[int], leaders: set[int]) -> Iterator[VoterChange]:
    for site in sites:
        if site not in state.voters:
            yield VoterChange("promote", site, VoterState(state.voters | {site}, state.leader))
    for site in sorted(leaders & state.voters - {state.leader}):
        yield VoterChange("move-leader", site, VoterState(state.voters, site))
    for site in sites:
        if site in state.voters and site != state.leader:
            yield VoterChange("demote", site, VoterState(state.voters - {site}, state.leader))


# Way from the configuration that runs today to a plan: steps, gain, and when it pays


@dataclass(frozen=True, eq=False)
class PlanMoves:
    """The way from the present configuration to a plan."""

    problem: Problem  #: the question of the plan
    changes: RoleChanges  #: what changes
    #: `before`, `after`: mean latency of the present configuration and of the plan, ms
    before: float
    after: float
    price: float  #: price of all changes, not spread over the horizon, ms added to one period
    #: safe steps in their order, each with the mean latency that the database has after it, ms
    steps: tuple[tuple[MoveStep, float], ...]

    @property
    def gain(self) -> float:
        """Mean latency that the move saves, ms; negative where it costs some."""
        return self.before - self.after

    @property
    def pays_after(self) -> float:
        """Periods of the demand after which the gain has paid the price; infinite: never."""
        if not self.price:
            return 0.0
        return self.price / self.gain if self.gain > 0 else math.inf


def plan_moves(plan: Plan) -> PlanMoves | None:
    """Return how a plan is reached from `Problem.current`; None without one, or without a plan."""
    problem, found, present = plan.problem, plan.configuration, plan.problem.present
    if found is None or present is None:
        return None
    demand, steps = problem.demand, []
    for step in steps_between(problem, present, found):
        state = step.after
        serving = [r for r in state.replicas if r not in state.behind]
        leader = state.configuration.leader
        value = score(demand, leader, state.voters, serving, state.quorums.commit)
        steps.append((step, value / demand.operations))
    before = score_of(problem, present) / demand.operations
    after = score_of(problem, found) / demand.operations
    asked = problem.moves or Moves()  # the prices alone, not spread over the horizon
    whole = Moves(asked.add, asked.remove, asked.promote, asked.demote, asked.leader)
    price = MoveCosts(problem.instance, present, whole).price.value(found)
    return PlanMoves(problem, changes(present, found), before, after, price, tuple(steps))


def moves_sentence(moves: PlanMoves) -> str:
    """Return the gain of the move, and when the move pays, as one sentence."""
    if not moves.changes:
        return f"Nothing changes: the present configuration is the answer, {moves.before:.3f} ms."
    count = moves.changes.size
    words = f"{count} change{'' if count == 1 else 's'}: {moves.before:.3f} ms becomes "
    words += f"{moves.after:.3f} ms, a gain of {moves.gain:.3f} ms"
    if moves.before > 0:
        words += f" ({100 * moves.gain / moves.before:.1f} %)"
    if not moves.price:
        return words + "."
    if math.isinf(moves.pays_after):
        return words + f". The price is {moves.price:.3f} ms; no gain pays it back."
    return words + (
        f". The price is {moves.price:.3f} ms: it is paid back after "
        f"{moves.pays_after:.1f} periods of the demand."
    )


def move_tables(moves: PlanMoves) -> tuple[ValueTable, ...]:
    """Return the steps as a table; no rows if nothing changes."""
    sites, last, rows = moves.problem.instance.sites, moves.before, []
    for number, (step, mean) in enumerate(moves.steps, 1):
        rows.append((str(number), step_text(step, sites), mean, last - mean))
        last = mean
    columns = (
        ValueColumn("step"),
        ValueColumn("what to do"),
        ValueColumn("mean after it, ms", 3),
        ValueColumn("gain, ms", 3),
    )
    return (ValueTable("Moves from today's configuration", columns, tuple(rows)),) if rows else ()


def moves_document(moves: PlanMoves) -> Mapping[str, object]:
    """Return the way to the plan as JSON values, with names."""
    sites, now = moves.problem.instance.sites, moves.changes

    def names(chosen: tuple[int, ...]) -> list[str]:
        return [sites[site] for site in chosen]

    pays = moves.pays_after
    return {
        "changes": now.size,
        "leader": now.leader,
        "added": names(now.added),
        "removed": names(now.removed),
        "promoted": names(now.promoted),
        "demoted": names(now.demoted),
        "before_ms": moves.before,
        "after_ms": moves.after,
        "gain_ms": moves.gain,
        "price_ms": moves.price,
        "pays_after_periods": None if math.isinf(pays) else pays,
        "steps": [
            {**step_document(step, sites), "mean_ms": None if math.isinf(mean) else mean}
            for step, mean in moves.steps
        ],
    }
