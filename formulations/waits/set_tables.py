"""The numbers of a question as the compiled search over sets reads them (csrc/sets.h)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from placement.evaluation.replica_prices import ReplicaPrices, most_new_sites, new_sites
from placement.evaluation.score import closest_first
from placement.model.configuration import Configuration
from placement.model.constraints import majority
from placement.model.waits import Clause
from placement.problem import Problem
from placement.support.checks import FloatArray, IntArray

if TYPE_CHECKING:
    from formulations.waits._kernel import _Sets

__all__ = ["MOST_MEMBERS", "WaitTables", "why_not"]

MOST_MEMBERS = 12
"""Most replicas of a set; as in csrc/sets.h."""

_MOST_CLAUSES = 8
_MOST_DOMAINS = 256
_ORIGINS = {"leader": 0, "near": 1, "client": 2}
_SCOPES = {"": 0, "inside": 1, "outside": 2}
_NO_CAP = 2**31 - 1


def _kernel() -> ModuleType:
    """Return the compiled search, which is imported when it is first used."""
    from formulations.waits import _kernel as compiled

    return compiled


def why_not(problem: Problem) -> str | None:
    """Return why the search over sets does not support a question, or None."""
    rules, demand = problem.rules, problem.demand
    if rules.budget is not None or rules.cost_weight:
        return "it does not support money; use 'exact' or 'milp'"
    if demand.scenarios > 1:
        return "it knows one table of RTTs, and these vary by interval; use 'exhaustive'"
    if rules.replicas_max > MOST_MEMBERS:
        return (
            f"it takes at most {MOST_MEMBERS} replicas, and {rules.replicas_max} are asked for; "
            "ask for fewer, or use 'exact' without waits"
        )
    if rules.votes is not None:
        return "it counts one vote for each voter, and sites have several (votes); use 'exact'"
    if any(len(term.clauses) > _MOST_CLAUSES for term in demand.waits):
        return f"it takes at most {_MOST_CLAUSES} clauses in a wait"
    labels = [group.labels for group in rules.groups]
    labels += [one for term in demand.waits for one in term.labels if one is not None]
    if any(int(one.max()) >= _MOST_DOMAINS for one in labels):
        return f"it takes at most {_MOST_DOMAINS} domains in a level; use 'exhaustive'"
    return None


def _need(clause: Clause, size: int, quorum: int) -> int:
    """Return the answers of a clause for the kernel: 0 for all, -1 for a majority inside."""
    if isinstance(clause.need, int):
        return min(clause.need, size + 1)
    if clause.need == "majority":
        return -1 if clause.scope == "inside" else majority(size)
    return quorum if clause.need == "quorum" else 0


@dataclass(frozen=True, eq=False)
class WaitTables:
    """A question about sets of one size, sites in search order.

    Attributes
    ----------
    kernel
        The compiled search.
    order
        Site index of each position.
    forced
        Positions that every set holds.
    leaders
        Positions that may lead; -1 alone where no operation needs a leader.
    constants
        What does not depend on the set under each of these leaders.
    size
        |R|.
    leaderless
        Whether no operation needs a leader.
    """

    kernel: _Sets
    order: IntArray
    forced: tuple[int, ...]
    leaders: tuple[int, ...]
    constants: tuple[float, ...]
    size: int
    leaderless: bool

    @classmethod
    def of(cls, problem: Problem, size: int) -> WaitTables:
        """Build the tables for sets of one size, and hand them to the kernel."""
        demand, rules = problem.demand, problem.rules
        everyone_votes = rules.voters == size
        able = rules.may_hold & rules.may_vote if everyone_votes else rules.may_hold
        prices = ReplicaPrices.of(problem, size)
        new, most_new = (
            new_sites(problem),
            most_new_sites(problem, size) if problem.limits else size,
        )
        if most_new <= 0:
            able = able & ~new
        client_rtt, site_rtt = demand.client_rtt[0], demand.site_rtt[0]
        active = np.nonzero(demand.counts[0].any(axis=1))[0]
        mass = demand.counts[0][active].sum(axis=1)
        sites = np.nonzero(able)[0]
        order = sites[closest_first(mass @ client_rtt[np.ix_(active, sites)])]
        by_site = np.ascontiguousarray(client_rtt[np.ix_(active, order)].T)
        between = np.ascontiguousarray(site_rtt[np.ix_(order, order)])
        table = _WaitRows(order, size, rules.voters, rules.quorum)
        if demand.quorum[0] > 0:
            table.add_votes(float(demand.quorum[0]), len(active))
        for term in demand.waits:
            weight = term.weight[0][active]
            if weight.any():
                table.add_wait(_ORIGINS[term.origin], term.clauses, term.labels, weight)
        if 0 < most_new < size and (~new).sum() < _MOST_DOMAINS:
            # every old site is a domain of its own, so that the cap binds new ones alone
            table.rules.append(
                [0, most_new, 0, 0, 0, table.label(np.where(new, 0, np.cumsum(~new)))]
            )
        for group in rules.groups:
            table.rules.append([
                int(group.role == "voters"), _NO_CAP if group.cap is None else group.cap,
                group.min_domains or 0, max(group.domain, 0), group.least,
                table.label(group.labels),
            ])  # fmt: skip
        labels = np.array(table.labels, dtype=np.int32)
        kernel = _kernel().create(
            (len(order), len(active), size, rules.voters, len(table.leaders), len(table.rules),
             len(labels)),
            order.astype(np.int32),
            by_site,
            between,
            closest_first(between).astype(np.int32),
            closest_first(by_site.T).astype(np.int32),
            np.ascontiguousarray(demand.near[0][active]),
            np.ascontiguousarray(demand.relay[0][active]),
            np.array(table.weights, dtype=np.float64).reshape(-1),
            labels,
            np.array([rules.may_vote[order], rules.must_vote[order], rules.must_hold[order]],
                     dtype=np.uint8),
            np.array(table.terms, dtype=np.int32).reshape(-1),
            np.array(table.leaders, dtype=np.float64),
            np.array(table.rules, dtype=np.int32).reshape(-1),
            np.zeros(len(order)) if prices is None else prices.by_site[order],
        )  # fmt: skip
        must = rules.must_hold[order] | (rules.must_vote[order] if everyone_votes else False)
        # a site that must hold a replica and may not vote: there is no set, under no leader
        possible = not (rules.must_hold & ~able).any() and most_new >= 0
        leads = np.nonzero(rules.may_lead[order])[0].tolist() if possible else []
        constants = np.full(len(order), demand.constant)
        if prices is not None:
            constants += prices.constants[order]
        direct = demand.direct[0][active] @ by_site.T
        return cls(
            kernel,
            order,
            tuple(np.nonzero(must)[0].tolist()),
            (-1,) * possible if demand.leaderless else tuple(leads),
            tuple(constants[:1].tolist()) * possible if demand.leaderless
            else tuple(float(direct[ell]) + float(constants[ell]) for ell in leads),
            size,
            demand.leaderless,
        )  # fmt: skip

    def configuration(self, leader: int, replicas: bytes, voters: bytes) -> Configuration:
        """Return the incumbent of the kernel."""
        return Configuration.of(
            leader,
            np.frombuffer(voters, dtype=np.int32).tolist(),
            np.frombuffer(replicas, dtype=np.int32).tolist(),
        )

    def beginning(self, place: int) -> tuple[int, ...]:
        """Return the positions that every set under a leader holds, the forced ones first."""
        leader = self.leaders[place]
        return tuple(dict.fromkeys((*self.forced, *((leader,) if leader >= 0 else ()))))

    def lead(self, place: int) -> None:
        """Begin the tree of one of the leaders."""
        _kernel().lead(self.kernel, self.leaders[place], self.constants[place])

    def kernel_bound(self, prefix: tuple[int, ...], first: int) -> float:
        """Return a lower bound on all sets that begin with some positions."""
        found: float = _kernel().bound(self.kernel, np.array(prefix, dtype=np.int32), first)
        return found

    def kernel_run(self, prefix: tuple[int, ...], first: int, seconds: float) -> bool:
        """Search all sets that begin with some positions; return whether that was completed."""
        done: bool = _kernel().run(self.kernel, np.array(prefix, dtype=np.int32), first, seconds)
        return done

    def kernel_each(
        self,
        prefix: tuple[int, ...],
        value: float,
        seconds: float,
        found: Callable[[IntArray], float],
    ) -> bool:
        """List all sets within a value that begin with some positions.

        Parameters
        ----------
        prefix
            Positions.
        value
            Largest value of a set that is listed.
        seconds
            Time limit.
        found
            Called with sets of site indices, shape (sets, |R|), rows ascending; it returns the
            value from then on, if that is smaller.

        Returns
        -------
        bool
            Whether all were listed.
        """

        def rows(listed: bytes) -> float:
            sets = np.frombuffer(listed, dtype=np.int32).reshape(-1, self.size)
            return found(sets.astype(np.intp))

        first = np.array(prefix, dtype=np.int32)
        done: bool = _kernel().each(self.kernel, first, value, seconds, rows)
        return done

    def kernel_improve(self, chosen: tuple[int, ...]) -> None:
        """Descend by swaps from a complete set."""
        _kernel().improve(self.kernel, np.array(chosen, dtype=np.int32))

    def kernel_limit(self, value: float) -> None:
        """Tell a value that the best is not above."""
        _kernel().limit(self.kernel, value)

    def kernel_best(self) -> tuple[float, int, bytes, bytes]:
        """Return value, leader, replicas and voters of the best, leader -1 when there is none."""
        found: tuple[float, int, bytes, bytes] = _kernel().best(self.kernel)[:4]
        return found

    def pairs(self, leader: int | None) -> list[list[float]]:
        """Return the pairs of waits that bound the sets of a leader (a site): places and a weight.

        Places are those in `waits` of :class:`~placement.proof.sets.prefix_bounds.PrefixBounds`.
        """
        leads = self.order[list(self.leaders)].tolist() if leader is not None else []
        if leader is not None and leader not in leads:
            return []  # no set holds it
        place = 0 if leader is None else leads.index(leader)
        self.lead(place)
        prefix = self.beginning(place)
        if len(prefix) >= self.size:
            return []
        self.kernel_bound(prefix, 0)
        found: list[list[float]] = [list(one) for one in _kernel().pairs(self.kernel)]
        return found

    def kernel_counts(self) -> tuple[int, int]:
        """Return the nodes and leaves so far."""
        counts: tuple[int, int] = _kernel().best(self.kernel)[4:]
        return counts


class _WaitRows:
    """Rows of whole numbers: waits and rules, with the labels that they name."""

    def __init__(self, order: IntArray, size: int, voters: int, quorum: int) -> None:
        self.order = order
        self.size, self.voters, self.quorum = size, voters, quorum
        self.terms: list[list[int]] = []
        self.leaders: list[float] = []
        self.weights: list[FloatArray] = []
        self.labels: list[IntArray] = [np.zeros(len(order), dtype=np.intp)]
        self.rules: list[list[int]] = []

    def label(self, labels: IntArray | None) -> int:
        """Return the row of some labels; row 0 puts all sites in one domain."""
        if labels is None:
            return 0
        self.labels.append(labels[self.order])
        return len(self.labels) - 1

    def add_votes(self, rounds: float, clients: int) -> None:
        """Add the rounds of votes of the four coefficients."""
        self.add_wait(0, (Clause("quorum"),), (None,), np.full(clients, rounds / clients))
        self.leaders[-1] = rounds

    def add_wait(
        self,
        origin: int,
        clauses: tuple[Clause, ...],
        labels: tuple[IntArray | None, ...],
        weight: FloatArray,
    ) -> None:
        """Add a wait with its rounds by client."""
        row = [origin, len(clauses)]
        for clause, of in zip(clauses, labels, strict=True):
            size = self.voters if clause.role == "voters" else self.size
            row += [
                _need(clause, size, self.quorum),
                int(clause.role == "replicas"),
                _SCOPES[clause.scope],
                self.label(of),
            ]
        self.terms.append(row + [0] * (2 + 4 * _MOST_CLAUSES - len(row)))
        self.leaders.append(float(weight.sum()))
        self.weights.append(weight)
