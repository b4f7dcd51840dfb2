"""Decision variables of the program, and the values they take at a given configuration.

==========  ===========================  =====================================================
name        index                        meaning
==========  ===========================  =====================================================
x           site                         holds a replica (binary)
v           site                         votes (binary)
y           site                         leads (binary)
z           client i, site               serves row i of ProgramData.clients, in [0, 1]
Z           client i, site               client i is served from here or closer, in [0, 1]
F           class, site, leader          share of the class' forwarded operations, in [0, 1]
f           client i, site, leader       client i is served here and ℓ leads, in [0, 1]
t           scenario, leader, j          ℓ leads and waits its j-th radius (binary)
T           scenario, leader, j          ℓ leads and waits its j-th radius or less (binary)
E           wait, scenario, leader, i    ℓ leads and its wait ends within its i-th radius (binary)
u           leader, site                 ℓ leads and the site votes, in [0, 1]
g           scenario, leader, site       ℓ leads and waits for the site's vote (binary)
q           scenario                     quorum wait, in units of the longest possible one
w           leader, site                 ℓ leads and the site holds a replica, in [0, 1]
e           rule, domain                 the domain counts as covered, in [0, 1]
==========  ===========================  =====================================================

Which of them exist depends on the recipe and on the question.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from formulations.milp.program_data import ProgramData
from formulations.milp.recipes import Forwarding, Nearest, Quorum, Rows
from placement.evaluation.score import nearest, quorum_latency
from placement.evaluation.waits.wait_latency import wait_latency
from placement.model.configuration import Configuration

__all__ = ["Affine", "ProgramVariables", "assign", "declare"]


@dataclass(frozen=True, slots=True)
class Affine:
    """A linear expression: constant plus (coefficient, variable) pairs."""

    pairs: tuple[tuple[float, Any], ...] = ()
    constant: float = 0.0

    def times(self, factor: float) -> Affine:
        """Return the expression scaled."""
        return Affine(tuple((factor * a, var) for a, var in self.pairs), factor * self.constant)

    @staticmethod
    def total(parts: Iterable[Affine]) -> Affine:
        """Return the sum of expressions."""
        pairs: list[tuple[float, Any]] = []
        constant = 0.0
        for part in parts:
            pairs.extend(part.pairs)
            constant += part.constant
        return Affine(tuple(pairs), constant)

    @staticmethod
    def of(variables: Iterable[Any], factor: float = 1.0) -> Affine:
        """Return factor times the sum of variables."""
        return Affine(tuple((factor, var) for var in variables))

    def minus(self, other: Affine) -> Affine:
        """Return the difference of two expressions."""
        return Affine.total((self, other.times(-1.0)))

    def expression(self) -> Any:
        """Return the terms as a Pyomo expression."""
        from pyomo.core.expr import LinearExpression

        return LinearExpression(
            constant=self.constant,
            linear_coefs=[a for a, _ in self.pairs],
            linear_vars=[var for _, var in self.pairs],
        )


@dataclass(frozen=True, eq=False)
class ProgramVariables:
    """The Pyomo variables (indexed; empty where the recipe does without), and the data they index.

    `u` exists for quorums split by leader, `w` when prices of replicas depend on the leader.
    """

    terms: ProgramData
    rows: Rows
    x: Any
    v: Any
    y: Any
    z: Any
    Z: Any
    F: Any
    f: Any
    t: Any
    T: Any
    E: Any
    u: Any
    g: Any
    q: Any
    w: Any
    e: Any

    def serves(self, client: int, site: int) -> Affine:
        """z_cr: the share of client i that a site of its `serving` list serves."""
        if self.rows.nearest is not Nearest.CHAIN:
            return Affine(((1.0, self.z[client, site]),))
        serving = self.terms.clients[client].serving
        position = serving.index(site)
        here = self._cumulative(client, position)
        return here.minus(self._cumulative(client, position - 1))

    def within(self, client: int, site: int) -> Affine:
        """Σ_{s ⪯_c r} z_cs: the share of client i served from `site` or closer."""
        row = self.terms.clients[client]
        ball = set(row.order[: row.order.index(site) + 1])
        count = sum(1 for r in row.serving if r in ball)  # `serving` follows `order`: a prefix
        if self.rows.nearest is Nearest.CHAIN:
            return self._cumulative(client, count - 1)
        return Affine.of(self.z[client, r] for r in row.serving[:count])

    def longest_wait(self, scenario: int) -> float:
        """Longest quorum wait of a scenario that any leader can have, in ms; 1 when all are 0."""
        waits = (waits[-1] for (k, _), waits in self.terms.radii.items() if k == scenario)
        return max(waits) or 1.0

    def _cumulative(self, client: int, position: int) -> Affine:
        serving = self.terms.clients[client].serving
        if position < 0:
            return Affine()
        if position == len(serving) - 1:
            return Affine(constant=1.0)
        return Affine(((1.0, self.Z[client, serving[position]]),))


def declare(model: Any, terms: ProgramData, rows: Rows) -> ProgramVariables:
    """Add the variables of a recipe to a Pyomo model.

    Pinned sites have their binaries bounded below by 1. O(number of variables).
    """
    import pyomo.environ as pyo

    rules, leaders = terms.problem.rules, terms.leaders
    chain = rows.nearest is Nearest.CHAIN
    flows = rows.forwarding is Forwarding.AGGREGATED
    clients = list(enumerate(terms.clients))
    quorum = rows.quorum
    slots = [(k, ell, j) for (k, ell), waits in terms.radii.items() for j in range(len(waits))]
    nested = quorum in (Quorum.NESTED, Quorum.PER_LEADER)
    # The last radius is certain as soon as ℓ leads; T needs to be integer from quorums of three on.
    inner = [(k, ell, j) for k, ell, j in slots if j < len(terms.radii[k, ell]) - 1]
    step = pyo.Binary if rules.quorum > 2 else pyo.UnitInterval

    def pinned(must: Any) -> Any:
        return lambda _, site: (int(must[site]), 1)

    def add(name: str, index: Iterable[Any], domain: Any, bounds: Any = None) -> Any:
        component = pyo.Var(list(index), domain=domain, bounds=bounds)
        model.add_component(name, component)
        return component

    unit = pyo.UnitInterval
    return ProgramVariables(
        terms=terms,
        rows=rows,
        x=add("x", terms.holders, pyo.Binary, pinned(rules.must_hold)),
        v=add("v", terms.voters, pyo.Binary, pinned(rules.must_vote)),
        y=add("y", leaders, pyo.Binary),
        z=add("z", [(i, r) for i, row in clients for r in row.serving if not chain], unit),
        Z=add("Z", [(i, r) for i, row in clients for r in row.serving[:-1] if chain], unit),
        F=add(
            "F",
            [
                (b, r, ell)
                for b, group in enumerate(terms.classes)
                for r in sorted({r for i in group.members for r in terms.clients[i].serving})
                for ell in leaders
                if flows
            ],
            unit,
        ),
        f=add(
            "f",
            [
                (i, r, ell)
                for i, row in clients
                if row.relay > 0 and not flows
                for ell in leaders
                for r in _not_beyond(row.order, row.serving, ell)
            ],
            unit,
        ),
        t=add("t", slots if quorum is Quorum.RADIUS else [], pyo.Binary),
        T=add("T", inner if nested else [], step),
        E=add(
            "E",
            [(*key, i) for key, wait in terms.led.items() for i in range(len(wait.radii) - 1)],
            pyo.Binary,
        ),
        u=add(
            "u",
            [
                (ell, r)
                for ell in leaders
                for r in terms.voters
                if quorum is Quorum.PER_LEADER and terms.radii
            ],
            unit,
        ),
        g=add(
            "g",
            [
                (k, ell, r)
                for k, ell in terms.radii
                for r in terms.voters
                if quorum is Quorum.MEMBERSHIP
            ],
            pyo.Binary,
        ),
        q=add(
            "q",
            sorted({k for k, _ in terms.radii}) if quorum is Quorum.MEMBERSHIP else [],
            unit,
        ),
        w=add(
            "w",
            [(ell, r) for ell in leaders for r in terms.holders if terms.prices_vary],
            unit,
        ),
        e=add(
            "e",
            [
                (n, d)
                for n, group in enumerate(rules.groups)
                if group.min_domains is not None
                for d in range(len(group.names))
            ],
            unit,
        ),
    )


def _not_beyond(order: tuple[int, ...], serving: tuple[int, ...], leader: int) -> tuple[int, ...]:
    """Return the sites of `serving` that are not farther than the leader in the client's order."""
    if leader not in order:
        return serving
    ball = set(order[: order.index(leader) + 1])
    return tuple(r for r in serving if r in ball)


def assign(variables: ProgramVariables, configuration: Configuration) -> None:
    """Set every variable to its value at a configuration, for warm starts and for checks.

    The configuration need not be feasible; one that uses what `ProgramData` left out cannot be
    expressed and is recognised by rows that do not hold.
    """
    terms = variables.terms
    demand, rules = terms.demand, terms.problem.rules
    leader, voters, replicas = configuration.leader, configuration.voters, configuration.replicas
    for container, chosen in (
        (variables.x, replicas),
        (variables.v, voters),
        (variables.y, (leader,)),
    ):
        for site in container:
            container[site].set_value(int(site in chosen))
    near = nearest(demand.client_rtt, replicas)
    server = [int(near[row.scenario, row.client]) for row in terms.clients]
    for i, r in variables.z:
        variables.z[i, r].set_value(int(r == server[i]))
    for i, r in variables.Z:
        order = terms.clients[i].order
        served = server[i] in order and order.index(server[i]) <= order.index(r)
        variables.Z[i, r].set_value(int(served))
    for (b, r, ell), flow in variables.F.items():
        group = terms.classes[b]
        share = sum(terms.clients[i].relay for i in group.members if server[i] == r)
        # the members of a class may sum to a rounding error more than its weight
        flow.set_value(min(1.0, share / group.weight) if ell == leader else 0.0)
    for (i, r, ell), flow in variables.f.items():
        flow.set_value(int(server[i] == r and ell == leader))
    # with fewer voters than votes no wait is right: the row that counts voters breaks then
    votes = min(rules.quorum, len(voters))
    waits = {
        k: float(quorum_latency(demand.site_rtt[k], leader, voters, votes))
        for k in {k for k, _ in terms.radii}
    }
    for (k, ell, j), chosen_radius in variables.t.items():
        hit = ell == leader and terms.radii[k, ell][j] == waits[k]
        chosen_radius.set_value(int(hit))
    for (k, ell, j), reached in variables.T.items():
        hit = ell == leader and terms.radii[k, ell][j] >= waits[k]
        reached.set_value(int(hit))
    ended = _ends(variables, configuration, leader)
    for (j, k, ell, i), reached in variables.E.items():
        hit = ell == leader and terms.led[j, k, ell].radii[i] >= ended[j, k]
        reached.set_value(int(hit))
    for (ell, r), vote in variables.u.items():
        vote.set_value(int(ell == leader and r in voters))
    for k, q in variables.q.items():
        q.set_value(waits[k] / variables.longest_wait(k))
    heard: dict[int, set[int]] = {}
    for k in waits:
        # the leader hears itself first, whatever other sites lie at distance 0
        others = np.array(sorted(set(voters) - {leader}), dtype=np.intp)
        order = np.argsort(demand.site_rtt[k, leader, others], kind="stable")
        heard[k] = {leader, *others[order[: rules.quorum - 1]].tolist()}
    for (k, ell, r), vote in variables.g.items():
        vote.set_value(int(ell == leader and r in heard[k]))
    for (ell, r), held in variables.w.items():
        held.set_value(int(ell == leader and r in replicas))
    for (n, d), covered in variables.e.items():
        group_rule = rules.groups[n]
        members = voters if group_rule.role == "voters" else replicas
        covered.set_value(int(d in group_rule.labels[list(members)]))


def _ends(
    variables: ProgramVariables, configuration: Configuration, leads: int
) -> dict[tuple[int, int], float]:
    """Return how long each wait beside the rounds of votes lasts, by (wait, scenario)."""
    demand, rules = variables.terms.demand, variables.terms.problem.rules
    leader = np.array([leads], dtype=np.intp)
    lasts = {}
    for j, k in {key[:2] for key in variables.terms.led}:
        world = (demand.waits[j], demand.client_rtt[k], demand.site_rtt[k])
        voters, replicas = np.array([configuration.voters]), np.array([configuration.replicas])
        near = leader[np.newaxis]  # no part of a leader's wait
        long = wait_latency(*world, leader, voters, replicas, near, rules.quorum)
        lasts[j, k] = float(long[0, 0])
    return lasts
