"""Demand by database and interval, and the configurations that databases run on: read and made."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from placement.errors import InputError, located, refused, require
from placement.evaluation.waits.wait_checks import refuse_waits
from placement.feasibility.feasible_plans import violations
from placement.io.demand_tables import read_demand
from placement.io.formats.tables import is_blank, name_cell, quantity_cell, read_table
from placement.methods.options import Options
from placement.methods.registry import Method, load_method, run
from placement.model.configuration import Configuration
from placement.model.instance import Instance
from placement.plan import Plan
from placement.problem import Problem
from placement.support.checks import LARGEST, BoolArray, FloatArray, IntArray, unique_names
from placement.support.status import Termination
from placement.workloads.activity import Timeline
from placement.workloads.fleets import Block


@dataclass(frozen=True, eq=False)
class Trace:
    """Counts per database, interval, client and operation.

    The counts are checked but not copied where they are contiguous float64 already: a thousand
    databases are a hundred megabytes.

    Parameters
    ----------
    databases
        Names, unique.
    intervals
        Labels, unique, oldest first. Their length is whatever it is: minutes or days.
    counts
        n[db, i, c, o], finite, >= 0, shape (databases, intervals, clients, operations); clients and
        operations in the order of the instance that the trace is replayed on.

    Raises
    ------
    InputError
        For duplicate names, another shape, or a count that is negative or not finite.
    """

    databases: tuple[str, ...]
    intervals: tuple[str, ...]
    counts: FloatArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "databases", unique_names(self.databases, "databases"))
        object.__setattr__(self, "intervals", unique_names(self.intervals, "intervals"))
        try:
            counts = np.ascontiguousarray(self.counts, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"not a table of numbers ({error})", field="counts", expected="numbers"
            ) from None
        wanted = (len(self.databases), len(self.intervals))
        words = "wrong shape"
        expected = f"{wanted[0]} databases × {wanted[1]} intervals × clients × operations"
        require(
            counts.ndim == 4 and counts.shape[:2] == wanted, "counts", words, counts.shape, expected
        )
        if not counts.size:
            raise InputError("nothing to replay", field="counts", expected="at least one count")
        # The least is NaN if anything is, and the largest shows infinity: two passes, no copies.
        if not (counts.min() >= 0 and counts.max() <= LARGEST):
            bad = np.argwhere(~((counts >= 0) & (counts <= LARGEST)))[0].tolist()
            raise InputError(
                f"out of range at database {self.databases[bad[0]]!r}, interval "
                f"{self.intervals[bad[1]]!r}, client {bad[2]}, operation {bad[3]}",
                field="counts",
                value=float(counts[tuple(bad)]),
                expected=f"a number from 0 to {LARGEST:g}",
            )
        object.__setattr__(self, "counts", counts)

    @classmethod
    def of_instance(cls, instance: Instance) -> Trace:
        """Return the demand of an instance as the trace of one database."""
        return cls((instance.name,), instance.intervals, instance.counts[np.newaxis])

    @classmethod
    def of_blocks(cls, blocks: Iterable[Block], timeline: Timeline) -> Trace:
        """Return generated databases (:func:`placement.workloads.fleets`) as one trace."""
        parts = list(blocks)
        if not parts:
            raise InputError("nothing to replay", field="blocks", expected="at least one block")
        return cls(
            tuple(each.name for block in parts for each in block.databases),
            timeline.labels,
            np.concatenate([block.counts for block in parts]).astype(np.float64, copy=False),
        )

    def __len__(self) -> int:
        return len(self.databases)

    def part(self, first: int, last: int) -> Trace:
        """Return the databases from `first` up to, but without, `last`."""
        return Trace(self.databases[first:last], self.intervals, self.counts[first:last])

    def of(self, databases: Sequence[str]) -> Trace:
        """Return some databases by name, in the order given.

        Raises
        ------
        InputError
            For a name that the trace does not have, or given twice.
        """
        place = {name: i for i, name in enumerate(self.databases)}
        names = unique_names(databases, "databases")
        for name in names:
            expected = f"one of the {len(self)} databases of the trace"
            require(name in place, "database", "no such database", name, expected)
        return Trace(names, self.intervals, self.counts[[place[name] for name in names]])

    def merged(self, size: int) -> Trace:
        """Return the same demand in intervals `size` times as long.

        A last interval that is not complete is left out: it would be compared with whole ones.

        Raises
        ------
        InputError
            For a size below 1, or more than there are intervals.
        """
        whole = len(self.intervals) // size if size >= 1 else 0
        expected = f"1 to {len(self.intervals)}, the number of intervals"
        require(whole >= 1, "merge", "out of range", size, expected)
        shape = (len(self), whole, size, *self.counts.shape[2:])
        counts = self.counts[:, : whole * size].reshape(shape).sum(axis=2)
        return Trace(self.databases, self.intervals[: whole * size : size], counts)

    def check_fits(self, instance: Instance) -> None:
        """Refuse an instance of other clients, operations, or, where RTTs vary, intervals."""
        shape = (len(instance.clients), len(instance.operations))
        words = "a trace of other clients or operations"
        expected = f"{shape[0]} clients × {shape[1]} operations, as in {instance.name}"
        require(self.counts.shape[2:] == shape, "counts", words, self.counts.shape[2:], expected)
        if instance.varying_rtt and (known := instance.intervals) != self.intervals:
            words = "the RTTs were measured in other intervals"
            expected = f"the {len(known)} intervals of {instance.name}, from {known[0]!r} to "
            raise refused("", "intervals", words, self.intervals[0], f"{expected}{known[-1]!r}")


# Deployment of each database: replicas, voters, and the leader its owner prefers

NOBODY = -1
"""Instead of a site index: no leader is preferred, or none can be named."""


@dataclass(frozen=True, eq=False)
class Deployments:
    """Replicas and voters of many databases on site indices.

    Parameters
    ----------
    replicas, voters
        Which sites hold a replica of, and vote in, each database: boolean, shape (databases,
        sites); voters are replicas, and every database has one.
    preferred
        Site that the owner wants as leader, a voter, shape (databases,); `NOBODY`: no wish.
    leader_shares
        Share of each database's groups that each site leads today, shape (databases, sites): rows
        sum to 1, or are 0 where that is not known. None: it is known of no database.

    Raises
    ------
    InputError
        For other shapes, a voter or preferred leader outside its set, a database without voters,
        shares that do not sum to 1 or of a site that does not vote.
    """

    replicas: BoolArray
    voters: BoolArray
    preferred: IntArray
    leader_shares: FloatArray | None = None

    def __post_init__(self) -> None:
        shape = np.shape(self.replicas)
        for field in ("replicas", "voters"):
            mask = np.asarray(vars(self)[field])
            good = mask.dtype == np.bool_ and mask.ndim == 2 and mask.shape == shape
            found, expected = f"{mask.dtype} of {mask.shape}", "booleans, databases × sites"
            require(good, field, "wrong shape", found, expected)
        votes, wishes = self.voters, np.asarray(self.preferred, dtype=np.intp)
        expected = f"({shape[0]},)"
        require(wishes.shape == shape[:1], "preferred", "wrong shape", wishes.shape, expected)
        object.__setattr__(self, "preferred", wishes)
        _refuse_any(~votes.any(axis=1), "voters", "has no voters", "at least one")
        stray = (votes & ~self.replicas).any(axis=1)
        _refuse_any(stray, "voters", "holds no replica there", "sites with a replica")
        inside = (wishes >= 0) & (wishes < shape[1])
        able = inside & votes[np.arange(len(wishes)), np.where(inside, wishes, 0)]
        expected = f"one of its voters, or {NOBODY}"
        _refuse_any((wishes != NOBODY) & ~able, "preferred", "has no voter there", expected)
        if self.leader_shares is None:
            return
        shares = np.asarray(self.leader_shares, dtype=np.float64)
        words, expected = "wrong shape", f"{votes.shape}, databases × sites"
        require(shares.shape == votes.shape, "leader_shares", words, shares.shape, expected)
        bad = (~(shares >= 0) | ((shares != 0) & ~votes)).any(axis=1)
        total = shares.sum(axis=1)
        bad |= (total != 0) & (np.abs(total - 1) >= 1e-6)
        expected = "shares >= 0 of its voters that sum to 1 (or none)"
        _refuse_any(bad, "leader_shares", "cannot have its leaders so", expected)
        object.__setattr__(self, "leader_shares", shares)

    def __len__(self) -> int:
        return len(self.replicas)

    def part(self, first: int, last: int) -> Deployments:
        """Return the deployments of the databases from `first` up to, but without, `last`."""
        rows = slice(first, last)
        shares = None if self.leader_shares is None else self.leader_shares[rows]
        return Deployments(self.replicas[rows], self.voters[rows], self.preferred[rows], shares)

    def start(self, database: int, may_lead: BoolArray) -> Configuration:
        """Return the configuration of a database at first, with a leader that may lead, if any.

        That is the preferred leader, or the first voter that may lead.
        """
        votes = np.nonzero(self.voters[database])[0].tolist()
        held = np.nonzero(self.replicas[database])[0].tolist()
        wish = int(self.preferred[database])
        able = [site for site in votes if may_lead[site]]
        return Configuration.of((able or votes)[0] if wish == NOBODY else wish, votes, held)

    def leading(self, instance: Instance, shares: Mapping[str, float]) -> Deployments:
        """Return a copy with a share of the leaders of every database by site name."""
        names, values = tuple(shares), np.array(list(shares.values()), dtype=np.float64)
        row = np.zeros(len(instance.sites))
        row[instance.site_indices(names, "leader_shares")] = values
        everywhere = np.broadcast_to(row, self.voters.shape)
        return Deployments(self.replicas, self.voters, self.preferred, everywhere)

    def preferring(self, instance: Instance, wishes: Sequence[str | None]) -> Deployments:
        """Return a copy with leaders preferred by name, one entry per database.

        A wish for a site that is no voter of its database becomes the voter closest to it (in
        `site_rtt`, read from that site; ties by site order), as the paper's store does.
        """
        words = "one preferred leader per database is needed"
        expected = f"{len(self)}, a site or None each"
        require(len(wishes) == len(self), "preferred", words, len(wishes), expected)
        rtt = instance.site_rtt if instance.site_rtt.ndim == 2 else instance.site_rtt[0]
        preferred = np.full(len(self), NOBODY, dtype=np.intp)
        for database, wish in enumerate(wishes):
            if wish is not None:
                site = int(instance.site_indices([wish], "preferred")[0])
                away = np.where(self.voters[database], rtt[site], np.inf)
                preferred[database] = site if self.voters[database, site] else away.argmin()
        return Deployments(self.replicas, self.voters, preferred, self.leader_shares)

    @classmethod
    def same(
        cls, instance: Instance, databases: int, replicas: Sequence[str], voters: Sequence[str]
    ) -> Deployments:
        """Return one deployment for all databases, given by names."""
        held = np.zeros((databases, len(instance.sites)), dtype=bool)
        votes = held.copy()
        held[:, instance.site_indices(replicas, "replicas")] = True
        votes[:, instance.site_indices(voters, "voters")] = True
        return cls(held, votes, np.full(databases, NOBODY, dtype=np.intp))

    @classmethod
    def solved(
        cls,
        problem: Problem,
        trace: Trace,
        *,
        method: str = "exact",
        progress: Callable[[int, int], None] | None = None,
    ) -> Deployments:
        """Return the plans of a method for the first interval of each database.

        Later intervals are ignored. A database that issued nothing then gets the plan for the first
        interval of all databases together.

        Parameters
        ----------
        problem
            How many replicas and voters, and under which constraints.
        trace
            The demand.
        method
            Name of a registered method.
        progress
            Called with (databases done, databases).

        Raises
        ------
        InputError
            When no database issued anything in the first interval, or the question is infeasible.
        UnsupportedError
            For operations with waits, and for witnesses.
        """
        refuse_waits(problem, "a replay")
        trace.check_fits(problem.instance)
        together = trace.counts[:, 0].sum(axis=0)
        words = "nothing was issued in the first interval, so nothing can be planned for it"
        expected = "a first interval with operations, or deployments"
        require(together.any(), "counts", words, trace.intervals[0], expected)
        held = np.zeros((len(trace), len(problem.instance.sites)), dtype=bool)
        votes = held.copy()
        common = None
        for database, counts in enumerate(trace.counts[:, 0]):
            if counts.any():
                plan = plan_of_all_intervals(problem, counts, method)
            else:
                common = common or plan_of_all_intervals(problem, together, method)
                plan = common
            held[database, list(plan.replicas)] = True
            votes[database, list(plan.voters)] = True
            if progress is not None:
                progress(database + 1, len(trace))
        return cls(held, votes, np.full(len(trace), NOBODY, dtype=np.intp))


def _refuse_any(bad: npt.ArrayLike, field: str, words: str, expected: str) -> None:
    """Refuse the first database for which something is bad."""
    first = int(np.argmax(bad)) if np.any(bad) else None
    require(first is None, field, f"database {first} {words}", expected=expected)


def interval_problem(problem: Problem, counts: FloatArray, interval: int | None) -> Problem:
    """Return the problem, with its constraints and decay, for some demand.

    The counts have the shape (clients, operations) for one moment, with the RTTs of `interval`; or
    (i, clients, operations), `interval` None: the first i intervals, each with its own RTTs, to
    which the decay of the problem applies.
    """
    if interval is not None:
        return problem.replace(
            instance=problem.instance.at_interval(interval, counts),
            objective=problem.objective.of_intervals(interval),
            decay=1.0,
        )
    seen = len(counts)
    changes: dict[str, object] = {"counts": counts, "intervals": problem.instance.intervals[:seen]}
    for field in ("client_rtt", "site_rtt"):
        rtt: FloatArray = getattr(problem.instance, field)
        if rtt.ndim == 3:
            changes[field] = rtt[:seen]
    return problem.replace(
        instance=problem.instance.replace(**changes),
        objective=problem.objective.of_intervals(slice(seen)),
    )


def plan_of_interval(method: Method, problem: Problem, before: Plan | None = None) -> Plan:
    """Return a plan with a configuration, started from the one before where that is allowed.

    InputError without a configuration: a replay has nothing to pay for then. KeyboardInterrupt
    after Ctrl-C: methods end with the best so far, and a replay must not go on with it.
    """
    start = before.configuration if before is not None else None
    if start is not None and violations(problem, start):
        start = None
    warm_start = before.warm_start if before is not None else None
    plan = run(method, problem, Options(start=start, warm_start=warm_start))
    if plan.termination is Termination.INTERRUPTED:
        raise KeyboardInterrupt
    if plan.configuration is None:
        raise InputError(
            f"method {method.name!r} finds no configuration: " + "; ".join(plan.reasons),
            field="problem",
            expected="a question with an answer in every interval",
        )
    return plan


def plan_of_all_intervals(problem: Problem, counts: FloatArray, method: str) -> Configuration:
    """Return the configuration that a method plans for the demand of one moment, `counts[0]`."""
    plan = plan_of_interval(load_method(method), interval_problem(problem, np.asarray(counts), 0))
    assert plan.configuration is not None  # `plan_of_interval` saw to that
    return plan.configuration


# Demand and deployments from tables: CSV, TSV or Parquet, checked cell by cell


def read_trace(path: str | os.PathLike[str], instance: Instance) -> tuple[Trace, tuple[str, ...]]:
    """Read demand per database and interval as :func:`placement.io.demand_tables.read_demand`.

    Without a column ``database`` all rows are of one database, named after the instance. Also
    returns the notes of the reader. A table without intervals is refused.
    """
    found = read_demand(
        path,
        clients=instance.clients,
        operations=[operation.name for operation in instance.operations],
        intervals=instance.intervals if instance.varying_rtt else None,
    )
    expected = "a column that says in which interval the operations were issued"
    require(found.intervals, "interval", "no such column", expected=expected, source=found.source)
    return Trace(found.databases or (instance.name,), found.intervals, found.counts), found.notes


# --- deployments -----------------------------------------------------------------------------


def read_deployments(
    path: str | os.PathLike[str], instance: Instance, databases: Sequence[str]
) -> Deployments:
    """Read the present configuration of each database; errors name file, row and column.

    The table (CSV, TSV or Parquet) has the columns ``database``, ``site``, ``role``, a row per
    replica; the role is ``replica`` (read-only), ``voter``, or ``leader`` (a voter that is
    preferred as leader; at most one per database). An optional column ``share`` tells the share of
    the database's groups that each voter leads today; a database has none, or they sum to 1. Each
    of `databases` needs a deployment; rows of others are an error.
    """
    table = read_table(path)
    columns = [table.column(name) for name in ("database", "site", "role")]
    share_column = table.columns.index("share") if "share" in table.columns else None
    shares = np.zeros((len(databases), len(instance.sites)))
    number = {name: i for i, name in enumerate(databases)}
    held = np.zeros((len(databases), len(instance.sites)), dtype=bool)
    votes = held.copy()
    wishes = np.full(len(databases), NOBODY, dtype=np.intp)
    for row, cells in enumerate(table.rows):
        at = table.at(row)
        database, site, role = (
            name_cell(cells[column], at, table.columns[column]).strip() for column in columns
        )
        words = "a database without demand"
        expected = f"one of the {len(number)} databases of the demand"
        require(database in number, "database", words, database, expected, source=at)
        with located(at):
            place = int(instance.site_indices([site], "site")[0])
        words = "unknown role"
        expected = "replica, voter, leader"
        require(role in ("replica", "voter", "leader"), "role", words, role, expected, source=at)
        index = number[database]
        words = f"a site of {database} given twice"
        require(not held[index, place], "site", words, site, "once", source=at)
        held[index, place] = True
        votes[index, place] = role != "replica"
        if share_column is not None and not is_blank(cells[share_column]):
            shares[index, place] = quantity_cell(cells[share_column], at, "share", "0 to 1")
            votes_there = role != "replica" or not shares[index, place]
            words = "a share of leaders at a site that does not vote"
            expected = "a share of a voter, or nothing"
            require(votes_there, "share", words, cells[share_column], expected, source=at)
        if role == "leader":
            words = f"a second leader of {database}"
            expected = f"one (first {instance.sites[wishes[index]]})"
            require(wishes[index] == NOBODY, "role", words, site, expected, source=at)
            wishes[index] = place
    for index, database in enumerate(databases):
        words = f"database {database} has no voter"
        expected = "a row with role voter or leader for every database of the demand"
        require(votes[index].any(), "database", words, expected=expected, source=table.source)
        total = float(shares[index].sum())
        words = f"the shares of the leaders of {database} do not sum to 1"
        good = not total or abs(total - 1) <= 1e-6
        require(good, "share", words, total, "1, or no shares", source=table.source)
    return Deployments(held, votes, wishes, shares if shares.any() else None)
