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

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from placement.errors import UnsupportedError, located, require
from placement.evaluation.waits.wait_checks import refuse_waits
from placement.methods.registry import load_method, refusal
from placement.model.configuration import Configuration
from placement.overtime.replay.database_replay import DatabaseReplay, TabledReplay
from placement.overtime.replay.deployments import NOBODY, Deployments, Trace
from placement.overtime.replay.leader_table import LeaderTable, rules_by_votes
from placement.overtime.replay.results import Replay, StrategyCosts
from placement.problem import Problem

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
    run = _ReplayRun(problem, trace, deployments, sorted(tiers), wanted, method, progress)
    try:
        run.go()
    except KeyboardInterrupt:
        if not run.done:
            raise
    return run.result()


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
    words = "nothing to replay: the first interval is only learnt from"
    require(len(trace.intervals) >= 2, "intervals", words, len(trace.intervals), "at least 2")
    shape, fitting = deployments.replicas.shape, (len(trace), len(problem.instance.sites))
    words, expected = "deployments of other databases or sites", "{} databases × {} sites"
    require(shape == fitting, "deployments", words, shape, expected.format(*fitting))
    known = tiers and {*tiers} <= {1, 2, 3} and len(set(tiers)) == len(tiers)
    require(known, "tiers", "no such tiers", tiers, "some of 1, 2, 3")
    expected = "some of " + ", ".join(STRATEGIES)
    for name in strategies:
        require(name in STRATEGIES, "strategies", "unknown strategy", name, expected)
    if problem.cost_weight or problem.budget is not None:
        raise UnsupportedError("a replay does not support budget and cost weight: leave them out")
    if problem.moves is not None and set(tiers) != {3}:
        raise UnsupportedError("a replay supports moves in tier 3 only: leave out the other tiers")
    votes = deployments.voters.sum(axis=1)
    few = votes < (problem.quorum or 0)
    words = f"database {trace.databases[int(few.argmax())]!r} has fewer voters"
    expected = f"at most {int(votes.min())}, the least number of voters deployed"
    require(not few.any(), "quorum", words, problem.quorum, expected)
    if 3 in tiers:
        reason = refusal(load_method(method), problem)
        if reason is not None:
            raise UnsupportedError(f"method {method!r} cannot plan tier 3: {reason}")
    wanted = {*strategies, "oracle"}
    if deployments.leader_shares is None:
        wanted.discard("given")  # undefined everywhere
    return tuple(name for name in STRATEGIES if name in wanted)


class _ReplayRun:
    """A replay under way: the outcomes of the databases that are done."""

    def __init__(
        self,
        problem: Problem,
        trace: Trace,
        deployments: Deployments,
        tiers: Sequence[int],
        strategies: Sequence[str],
        method: str,
        progress: Callable[[ReplayProgress], None] | None,
    ) -> None:
        self.problem, self.trace, self.deployments = problem, trace, deployments
        self.method, self.progress = method, progress
        # Other objectives are no sums over operations, and are planned in every tier.
        self.by_table = {tier for tier in tiers if tier < 3 and problem.objective.minimises_mean}
        self.by_plan = set(tiers) - self.by_table
        self.rules = rules_by_votes(problem, deployments) if self.by_table else {}
        self.rows = [
            (tier, name) for tier in tiers for name in strategies if (tier, name) != (3, "worst")
        ]
        shape = (len(self.rows), *trace.counts.shape[:2])
        self.leader = np.full(shape, NOBODY, dtype=np.intp)
        self.voters = np.full(shape, -1, dtype=np.intp)
        self.replicas = np.full(shape, -1, dtype=np.intp)
        self.score = np.full(shape, np.nan)
        self.sets: dict[tuple[int, ...], int] = {}  # numbered, so that many rows share a few
        self.proven: list[bool] = []
        self.done = self.plans = 0

    def go(self) -> None:
        """Replay one database after the other."""
        for database, name in enumerate(self.trace.databases):
            with located(f"database {name!r}"):
                for tier in sorted(self.by_table | self.by_plan):
                    self._replay(database, tier)
            self.done += 1
            self._tell()

    def _replay(self, database: int, tier: int) -> None:
        counts = self.trace.counts[database]
        about = (self.problem, counts, self.deployments, database, tier, self.method, self._planned)
        one = DatabaseReplay(*about)
        if tier in self.by_table:
            table = LeaderTable.of(
                self.problem, self.trace, self.deployments, database, self.rules, tier=tier
            )
            one = TabledReplay(*about, table)
        for row, (its_tier, strategy) in enumerate(self.rows):
            if its_tier != tier:
                continue
            when: dict[Configuration, list[int]] = {}
            for interval, chosen in enumerate(one.chosen(strategy)):
                if chosen is not None:
                    when.setdefault(chosen, []).append(interval)
            for plan, intervals in when.items():
                place = (row, database, intervals)
                for codes, sites in ((self.voters, plan.voters), (self.replicas, plan.replicas)):
                    codes[place] = self.sets.setdefault(tuple(sorted(sites)), len(self.sets))
                self.score[place] = one.scores(strategy, plan, intervals)
                if strategy not in ("average", "given"):
                    self.leader[place] = plan.leader
        self.proven += one.proven

    def _planned(self) -> None:
        self.plans += 1
        self._tell()

    def _tell(self) -> None:
        if self.progress is not None:
            self.progress(ReplayProgress(self.done, len(self.trace), self.plans))

    def result(self) -> Replay:
        """Return the outcomes of the databases that are done, without the first interval."""
        seen = slice(self.done), slice(1, None)
        return Replay(
            databases=self.trace.databases[: self.done],
            intervals=self.trace.intervals[1:],
            sites=self.problem.instance.sites,
            operations=self.trace.counts[seen].sum(axis=(2, 3)),
            outcomes=tuple(
                StrategyCosts(tier, name, *(each[row][seen] for each in arrays))
                for arrays in ((self.leader, self.voters, self.replicas, self.score),)
                for row, (tier, name) in enumerate(self.rows)
            ),
            sets=tuple(self.sets),
            decay=self.problem.decay,
            method=self.method if self.by_plan else "",
            proven=float(np.mean(self.proven)) if self.by_plan else float("nan"),
            objective=self.problem.objective.describe(),
            complete=self.done == len(self.trace),
        )
