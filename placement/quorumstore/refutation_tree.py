"""Proofs that no configuration of a quorum store is better, without any code of the searches.

A certificate says which replica sets are ruled out, and by which bound (:func:`replay` checks it).
The value that a search has proved decides which bounds hold: :func:`refutation_tree` finds one for
each prefix and writes it down; :func:`prove_bound` does both where a file has no certificate.

For every (N, R, W) that the rules leave, replica sets grow site by site in a fixed order, so that
each set is reached once. At every prefix stands a number: 0 if it grows on, else the reason why no
set that begins with it is better. Reasons are the rules about regions, or one scenario (normal
operation or a loss) and one side (reads or writes): too many requests then have too few replicas
within the limit, whatever sites follow. A complete set with the number 0 is put to the evaluator.

Sets are walked through by the check itself, so none can be left out, and no code of a search is
trusted. Let a prefix P be given, and let c sites of P be lost. Where at least N − c − Q + 1 of its
other sites are beyond the limit of a client, no set of N sites that contains P has a quorum of Q
within the limit of that client: a further lost site takes a replica away, which does not help. When
such clients have more requests than the percentile leaves out, the threshold is above the limit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from placement.errors import CertificateError, LimitError
from placement.quorumstore.latency import metrics
from placement.quorumstore.problem import QuorumProblem
from placement.support.checks import BoolArray, IntArray
from placement.support.status import OPTIMALITY_TOLERANCE, in_time
from placement.support.work import WORK, Work

GROWS, BY_RULES = 0, 1
"""Numbers of a prefix that grows on, and of one that breaks the rules about regions."""

MOST_STEPS = 300_000
"""Most prefixes of a certificate: about a megabyte in a plan file."""

_COMPARISONS = 6_667
"""Most comparisons of an RTT with a limit for each of these prefixes, a few seconds in all."""

_BLOCK = 2048
"""Sets that are evaluated together."""

_FIRST = 2
"""Number of the first reason with a scenario: normal operation, reads."""


@dataclass(frozen=True, slots=True)
class SetAccount:
    """Account of all replica sets for one bound."""

    least: float  #: least value of all configurations, infinite if there is none
    sets: int  #: pairs of a replica set and quorum sizes
    #: `by_rules`, `by_normal`, `by_losses`, `evaluated`: how many of them break a rule about
    #: regions, are beyond the limits in normal operation or after a loss, and were given their
    #: value (losses included)
    by_rules: int
    by_normal: int
    by_losses: int
    evaluated: int
    bounds: int  #: prefixes of sets that are ruled out or grow on


@dataclass(frozen=True, slots=True)
class RefutationTree:
    """Return the numbers of all visited prefixes."""

    order: tuple[int, ...]  #: all sites, in the order in which sets grow
    #: for each (N, R, W) of the problem, for each length 1 … N, the number of every prefix of that
    #: length whose own prefixes all grow on: in the order of their parents and then of `order`
    numbers: tuple[tuple[tuple[int, ...], ...], ...]

    @property
    def steps(self) -> int:
        """Prefixes in all."""
        return sum(len(level) for levels in self.numbers for level in levels)


def code_of(scenario: int, side: int) -> int:
    """Return the number of a reason: scenario 0 is normal operation; side 0 is reads, 1 writes."""
    return _FIRST + 2 * scenario + side


def grown(prefixes: IntArray, size: int, sites: int) -> IntArray:
    """Return all prefixes with one more position, shape (children, length + 1)."""
    count = _children(prefixes, size, sites)
    parent = np.repeat(np.arange(len(prefixes)), count)
    within = np.arange(len(parent)) - np.repeat(np.cumsum(count) - count, count)
    position = _last(prefixes)[parent] + 1 + within
    return np.column_stack([prefixes[parent], position])


def _last(prefixes: IntArray) -> IntArray:
    empty = not prefixes.shape[1]
    return np.full(len(prefixes), -1, dtype=np.intp) if empty else prefixes[:, -1]


def _children(prefixes: IntArray, size: int, sites: int) -> IntArray:
    missing = size - prefixes.shape[1] - 1
    return np.asarray(sites - missing - 1 - _last(prefixes))


class ScenarioBounds:
    """Bounds that no set of the value `below` or less can break, for all scenarios of a problem."""

    def __init__(self, problem: QuorumProblem, below: float) -> None:
        self.problem = problem
        contingency = problem.rules.contingency
        limits = problem.goal.limits(below, contingency)
        self.lost: tuple[tuple[int, ...], ...] = ((), *(problem.losses if contingency else ()))
        self._normal = (
            min(limits.normal_read, limits.worst_read),
            min(limits.normal_write, limits.worst_write),
        )
        self._worst = (limits.worst_read, limits.worst_write)
        self._counts = (problem.reads, problem.writes)
        self._spare = (
            problem.total_reads - problem.needed_reads,
            problem.total_writes - problem.needed_writes,
        )

    def refutes(
        self, sets: IntArray, size: int, quorum: int, scenario: int, side: int
    ) -> BoolArray:
        """Return for each prefix whether every set of `size` sites with it is beyond the limit.

        `sets` has the prefixes as site indices, shape (prefixes, length); `quorum` is R or W;
        scenario and side as in :func:`code_of`. O(prefixes · length · clients).
        """
        far = self.beyond(scenario, side)
        gone = np.zeros(len(self.problem.sites), dtype=np.int64)
        gone[list(self.lost[scenario])] = 1
        beyond = np.zeros((len(far), len(sets)), dtype=np.int64)
        lost = np.zeros(len(sets), dtype=np.int64)
        for column in sets.T:
            beyond += far[:, column]
            lost += gone[column]
        lacking = beyond >= size - lost - quorum + 1
        return np.asarray(self._counts[side] @ lacking > self._spare[side])

    def beyond(self, scenario: int, side: int) -> BoolArray:
        """Return whether a surviving site is beyond the limit, shape (clients, sites)."""
        limit = (self._worst if scenario else self._normal)[side]
        lost = self.lost[scenario]
        far: BoolArray = self.problem.rtt_after(lost) > limit
        far[:, list(lost)] = False
        return far


def replay(
    problem: QuorumProblem, bound: float, tree: RefutationTree, *, work: int = WORK
) -> SetAccount:
    """Prove from a certificate that no configuration has a value below `bound`.

    An infinite bound says that no configuration obeys the rules and limits. The account tells how
    many sets each kind of reason rules out, and the least value of those that were put to the
    evaluator: the bound holds where that is not below it. A number of the certificate, and an
    evaluation of a set in one scenario, takes one step of `work`, and one more for every eight
    pairs of a site and a replica.

    CertificateError names the first prefix whose reason does not hold, or what is wrong with the
    form. LimitError when the certificate takes more than `work` steps, before the first one.
    """
    sites = len(problem.sites)
    if sorted(tree.order) != list(range(sites)):
        raise CertificateError(f"the order does not name each of the {sites} sites once")
    if len(tree.numbers) != len(problem.pairs):
        raise CertificateError(
            f"{len(tree.numbers)} lists of numbers for {len(problem.pairs)} sizes N, R, W"
        )
    left = Work(work)
    for (size, _, _), levels in zip(problem.pairs, tree.numbers, strict=True):
        for level in levels:
            left.take(len(level) * (1 + sites * size // 8) + len(set(level)) * sites * sites)
        many = sum(number == GROWS for level in levels[size - 1 : size] for number in level)
        problem.take_evaluations(left, sets=many, size=size, losses=False)
    # each scenario that a number may name is listed
    problem.take_evaluations(left, sets=1, size=1, losses=problem.rules.contingency)
    below = bound * (1 - OPTIMALITY_TOLERANCE) if math.isfinite(bound) else bound
    walk = _Walk(ScenarioBounds(problem, below), np.array(tree.order, dtype=np.intp))
    for (size, read, write), levels in zip(problem.pairs, tree.numbers, strict=True):
        walk.through(size, (read, write), levels)
    many = sum(math.comb(sites, size) for size, _, _ in problem.pairs)
    counts = (walk.by_rules, walk.by_normal, walk.by_losses, walk.evaluated)
    return SetAccount(walk.least, many, *counts, tree.steps - walk.evaluated)


class _Walk:
    """Sets accounted for so far."""

    def __init__(self, bounds: ScenarioBounds, order: IntArray) -> None:
        self.bounds, self.order = bounds, order
        self.least = math.inf
        self.by_rules = self.by_normal = self.by_losses = self.evaluated = 0

    def through(self, size: int, quorums: tuple[int, int], levels: Sequence[Sequence[int]]) -> None:
        """Account for all sets of one (N, R, W)."""
        name = f"N-R-W {size}-{quorums[0]}-{quorums[1]}"
        if len(levels) != size:
            raise CertificateError(f"{name}: {len(levels)} lengths of prefixes instead of {size}")
        sites = len(self.order)
        prefixes = np.empty((1, 0), dtype=np.intp)
        for length, level in enumerate(levels, start=1):
            expected = int(_children(prefixes, size, sites).sum())
            if len(level) != expected:
                raise CertificateError(
                    f"{name}: {len(level)} numbers for {expected} prefixes of length {length}"
                )
            prefixes = grown(prefixes, size, sites)
            self._refuted(prefixes, size, quorums, np.array(level, dtype=np.int64), name)
            prefixes = prefixes[np.array(level, dtype=np.int64) == GROWS]
        if len(prefixes):
            self._evaluate(np.sort(self.order[prefixes], axis=1), quorums)

    def _refuted(
        self, prefixes: IntArray, size: int, quorums: tuple[int, int], level: IntArray, name: str
    ) -> None:
        """Check the reason of every prefix that does not grow on, and count its sets."""
        sets = self.order[prefixes]
        most = code_of(len(self.bounds.lost) - 1, 1)
        for number in np.unique(level[level != GROWS]).tolist():
            if not BY_RULES <= number <= most:
                raise CertificateError(f"{name}: the number {number} is not from 0 to {most}")
            rows = np.flatnonzero(level == number)
            scenario, side = divmod(number - _FIRST, 2)
            if number == BY_RULES:
                held = ~self.bounds.problem.admissible(sets[rows], max(quorums), size)
            else:
                held = self.bounds.refutes(sets[rows], size, quorums[side], scenario, side)
            if not held.all():
                first = sets[rows[np.flatnonzero(~held)[0]]]
                names = ", ".join(self.bounds.problem.sites[site] for site in first)
                raise CertificateError(
                    f"{name}: sets that begin with {names} are not ruled out by {number}"
                )
            missing = size - prefixes.shape[1]
            left = len(self.order) - 1 - prefixes[rows, -1]
            sets_of = np.bincount(left, minlength=1).tolist()
            many = sum(times * math.comb(rest, missing) for rest, times in enumerate(sets_of))
            if number == BY_RULES:
                self.by_rules += many
            elif scenario:
                self.by_losses += many
            else:
                self.by_normal += many

    def _evaluate(self, sets: IntArray, quorums: tuple[int, int]) -> None:
        """Put complete sets to the evaluator."""
        problem = self.bounds.problem
        self.evaluated += len(sets)
        for low in range(0, len(sets), _BLOCK):
            figures = metrics(problem, sets[low : low + _BLOCK], *quorums)
            values = problem.goal.values(figures, problem.rules.contingency)
            self.least = min(self.least, float(values.min()))


# --- writing ---------------------------------------------------------------------------------


def refutation_tree(
    problem: QuorumProblem, bound: float, *, most: int = MOST_STEPS
) -> RefutationTree | None:
    """Return a certificate that no configuration has a value below `bound`.

    It has at most `most` prefixes. The bound is what a search has proved; infinite where no
    configuration obeys rules and limits. None where more prefixes would be needed, or seconds of
    work: many sites, or a goal that limits no threshold (a cost without limits). O(prefixes ·
    scenarios · N · sites) at worst.
    """
    below = bound * (1 - OPTIMALITY_TOLERANCE) if math.isfinite(bound) else bound
    bounds = ScenarioBounds(problem, below)
    # sites that are beyond the limits of most requests first: their prefixes end early
    beyond = np.zeros(len(problem.sites))
    for side, counts in enumerate((problem.reads, problem.writes)):
        beyond += counts @ bounds.beyond(0, side)
    order = np.argsort(-beyond, kind="stable")
    left, work = most, most * _COMPARISONS
    numbers: list[tuple[tuple[int, ...], ...]] = []
    for size, read, write in problem.pairs:
        prefixes = np.empty((1, 0), dtype=np.intp)
        levels: list[tuple[int, ...]] = []
        for length in range(1, size + 1):
            prefixes = grown(prefixes, size, len(order))
            left -= len(prefixes)
            work -= len(prefixes) * length * len(order) * 2 * len(bounds.lost)
            if min(left, work) < 0:
                return None
            level = _numbers(bounds, order[prefixes], size, (read, write))
            levels.append(tuple(level.tolist()))
            prefixes = prefixes[level == GROWS]
        numbers.append(tuple(levels))
    return RefutationTree(tuple(order.tolist()), tuple(numbers))


def _numbers(
    bounds: ScenarioBounds, sets: IntArray, size: int, quorums: tuple[int, int]
) -> IntArray:
    """Return the number of each prefix, shape (prefixes,)."""
    found = np.where(bounds.problem.admissible(sets, max(quorums), size), GROWS, BY_RULES)
    for scenario, lost in enumerate(bounds.lost):
        in_time()
        # Where clients stay, the loss of a site outside the prefix is normal operation.
        concerned = bounds.problem.redirects or not scenario
        for side, quorum in enumerate(quorums):
            rows = np.flatnonzero(found == GROWS)
            if not concerned:
                rows = rows[np.isin(sets[rows], lost).any(axis=1)]
            if len(rows):
                out = bounds.refutes(sets[rows], size, quorum, scenario, side)
                found[rows[out]] = code_of(scenario, side)
    return found


def prove_bound(problem: QuorumProblem, bound: float, *, work: int = WORK) -> SetAccount:
    """Prove that no configuration has a value below `bound`, without a certificate.

    The reasons are looked for, and then checked as :func:`replay` checks those of a file, in at
    most `work` prefixes and as many steps of evaluations; LimitError beyond.
    """
    tree = refutation_tree(problem, bound, most=work)
    if tree is None:
        raise LimitError(
            f"{problem.name}: the proof takes more than {work:,} prefixes of replica sets"
        )
    return replay(problem, bound, tree, work=work)
