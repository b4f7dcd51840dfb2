"""Running a replay: the cost of every strategy, interval by interval.

Interval by interval a strategy sets the configuration from what was seen before, and pays the score
of what then came (Sharov et al., PVLDB 8(12), 2015, section 6.1). The first interval is only learnt
from. What is free follows from the tier: the leader (1), the voters too (2), everything (3).

=================== ======================================================================
optimized           leader of least agg_score (Eq. 2) over the intervals before; while these
                    say nothing, it stays where it was: at the preferred leader, or the first
                    candidate
closest-to-writes   throughout, the candidate closest to the client that issued most transactions
                    in the first interval; undefined when there were none
smallest-quorum     the candidate with the quickest quorum
average             the voters of ``optimized``, with leaders spread evenly over them (Eq. 4):
                    in tier 1, a store that does not choose
given               the deployment as it stands, with the share of leaders at each voter that
                    `Deployments.leader_shares` tells; undefined where it tells nothing
preferred           the leader that the owner prefers; undefined without one
static              the best constant configuration in hindsight
worst               the worst constant leader in hindsight (tiers 1 and 2)
oracle              the best configuration for the interval itself
=================== ======================================================================

Other objectives than the mean, such as a percentile or the worst loss, are planned by a method in
every tier, and what is paid in an interval is their value in it. Their closest-to-writes and
smallest-quorum are those of tier 3 in every tier, with the replicas and voters that are given.

With `Problem.moves`, in tier 3, ``optimized`` weighs in every interval the price of the move from
the configuration that it ran before, which is the deployment at first, and keeps the limits. The
cost is the latency alone, and the present configuration of the question plays no part.

In tier 2 each leader comes with the best voters, in tier 3 with the best voters and replicas, that
the strategy could know: those of the interval before where RTTs vary (closest-to-writes: of the
first; static, worst, oracle: in hindsight). In tier 3 closest-to-writes and smallest-quorum are the
methods of these names, run once, on the first interval.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from placement.errors import InputError, UnsupportedError
from placement.evaluation.waits.wait_checks import refuse_waits
from placement.methods.registry import load_method, refusal
from placement.overtime.replay.deployments import Deployments, Trace
from placement.overtime.replay.planned import replay_planned
from placement.overtime.replay.quorum_waits import QuorumWaits
from placement.overtime.replay.results import Replay, SiteSets, StrategyCosts, joined
from placement.overtime.replay.tier12 import fixed_roles, replay_tier12
from placement.problem import Problem

__all__ = ["BLOCK", "STRATEGIES", "ReplayProgress", "replay"]

STRATEGIES = (
    "optimized",
    "closest-to-writes",
    "smallest-quorum",
    "average",
    "given",
    "preferred",
    "static",
    "worst",
    "oracle",
)
"""All strategies, in the order of results."""

BLOCK = 64
"""Databases that are worked on at once in tiers 1 and 2; in tier 3 it is one."""


@dataclass(frozen=True, slots=True)
class ReplayProgress:
    """Progress of a replay: databases done, databases, and plans made (tier 3)."""

    done: int
    total: int
    plans: int = 0


def replay(
    problem: Problem,
    trace: Trace,
    deployments: Deployments,
    *,
    tiers: Sequence[int] = (1, 2),
    strategies: Sequence[str] = STRATEGIES,
    method: str = "exact",
    progress: Callable[[ReplayProgress], None] | None = None,
) -> Replay:
    """Replay a trace.

    Parameters
    ----------
    problem
        Network, constraints, objective and decay (τ of Eq. 2; the paper uses 2). Its own demand
        plays no part, and its numbers of replicas and voters only in tier 3: elsewhere the
        deployments have them.
    trace
        At least two intervals.
    deployments
        One per database.
    tiers
        Any of 1, 2, 3.
    strategies
        Any of `STRATEGIES`; the oracle is always there, to compare with.
    method
        Who plans in tier 3, and in every tier of another objective than the mean.
    progress
        Called now and then.

    Returns
    -------
    Replay
        After Ctrl-C, of the databases that were done, with `complete` false.

    Raises
    ------
    InputError
        When something does not fit together, or a database has no candidate leader.
    UnsupportedError
        When `method` cannot take the problem, or deployments do not hold its roles.
    KeyboardInterrupt
        After Ctrl-C when no database was done.

    Notes
    -----
    O(N·T·C·(O + |R|)) for N databases and T intervals in tiers 1 and 2; in tier 3 up to four plans
    per database and interval.
    """
    wanted = _checked(problem, trace, deployments, tiers, strategies, method)
    parts: list[Replay] = []
    try:
        for part in _blocks(problem, trace, deployments, tiers, wanted, method, progress):
            parts.append(part)
    except KeyboardInterrupt:
        if not parts:
            raise
    total = joined(parts)
    if len(total.databases) == len(trace):
        return total
    return replace(total, complete=False)


def _checked(
    problem: Problem,
    trace: Trace,
    deployments: Deployments,
    tiers: Sequence[int],
    strategies: Sequence[str],
    method: str,
) -> tuple[str, ...]:
    """Refuse arguments that contradict one another, and return the strategies in their order."""
    refuse_waits(problem, "a replay")
    trace.check_fits(problem.instance)
    if len(trace.intervals) < 2:
        raise InputError(
            "nothing to replay: the first interval is only learnt from",
            field="intervals",
            value=len(trace.intervals),
            expected="at least 2",
        )
    if deployments.replicas.shape != (len(trace), len(problem.instance.sites)):
        raise InputError(
            "deployments of other databases or sites",
            field="deployments",
            value=deployments.replicas.shape,
            expected=f"{len(trace)} databases × {len(problem.instance.sites)} sites",
        )
    if not tiers or set(tiers) - {1, 2, 3} or len(set(tiers)) != len(tiers):
        raise InputError("no such tiers", field="tiers", value=tiers, expected="some of 1, 2, 3")
    for name in strategies:
        if name not in STRATEGIES:
            raise InputError(
                "unknown strategy",
                field="strategies",
                value=name,
                expected="some of " + ", ".join(STRATEGIES),
            )
    if problem.cost_weight or problem.budget is not None:
        raise UnsupportedError("a replay does not support budget and cost weight: leave them out")
    if problem.moves is not None and set(tiers) != {3}:
        raise UnsupportedError("a replay supports moves in tier 3 only: leave out the other tiers")
    votes = deployments.voters.sum(axis=1)
    if problem.quorum is not None and (votes < problem.quorum).any():
        few = trace.databases[int((votes < problem.quorum).argmax())]
        raise InputError(
            f"database {few!r} has fewer voters",
            field="quorum",
            value=problem.quorum,
            expected=f"at most {int(votes.min())}, the least number of voters deployed",
        )
    if 3 in tiers:
        reason = refusal(load_method(method), problem)
        if reason is not None:
            raise UnsupportedError(f"method {method!r} cannot plan tier 3: {reason}")
    wanted = {*strategies, "oracle"}
    if deployments.leader_shares is None:
        wanted.discard("given")  # undefined everywhere
    return tuple(name for name in STRATEGIES if name in wanted)


def _blocks(
    problem: Problem,
    trace: Trace,
    deployments: Deployments,
    tiers: Sequence[int],
    strategies: Sequence[str],
    method: str,
    progress: Callable[[ReplayProgress], None] | None,
) -> Iterator[Replay]:
    # Other objectives are no sums over operations, and are planned in every tier.
    sums = problem.objective.minimises_mean
    by_plan = {tier for tier in tiers if tier == 3 or not sums}
    size = 1 if by_plan else BLOCK
    plans = 0

    def tick() -> None:
        nonlocal plans
        plans += 1
        if progress is not None:
            progress(ReplayProgress(first, len(trace), plans))

    for first in range(0, len(trace), size):
        part, held = trace.part(first, first + size), deployments.part(first, first + size)
        sets = SiteSets()
        outcomes: list[StrategyCosts] = []
        if set(tiers) - by_plan:
            terms = fixed_roles(problem, part, held)
            for tier in sorted(set(tiers) - by_plan):
                quorums = QuorumWaits(problem, held, tier, part.databases)
                outcomes += replay_tier12(part, terms, quorums, strategies, sets)
        proven = all_plans = 0
        for tier in sorted(by_plan):
            names = [name for name in strategies if tier < 3 or name != "worst"]
            placed = replay_planned(
                problem, part, held, names, sets, tier=tier, method=method, tick=tick
            )
            outcomes += placed.outcomes
            proven, all_plans = proven + placed.proven, all_plans + placed.plans
        yield Replay(
            databases=part.databases,
            intervals=part.intervals[1:],
            sites=problem.instance.sites,
            operations=part.counts[:, 1:].sum(axis=(2, 3)),
            outcomes=tuple(outcomes),
            sets=tuple(sets.members),
            decay=problem.decay,
            method=method if by_plan else "",
            proven=proven / all_plans if by_plan else float("nan"),
            objective=problem.objective.describe(),
        )
        if progress is not None:
            progress(ReplayProgress(min(first + size, len(trace)), len(trace), plans))
