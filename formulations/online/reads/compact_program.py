"""The compact program (Q2): O(n³) variables, exact for majorities and other thresholds.

Gateway i orders the eligible nodes by RTT. A read that does not go to the leaseholder has a
`size`-th fastest node l, whose RTT is its latency; given l, the other nodes asked are any size − 1
before l and any `spare` after it. Variables, for a gateway i:

    s_i0    probability of the leaseholder alone
    s_il    probability of a quorum whose size-th fastest member is l
    y_ilv   probability of such a quorum with v in it (v ≠ l)

    s_i0 + Σ_l s_il = 1
    Σ_{v before l} y_ilv = (size − 1)·s_il       Σ_{v after l} y_ilv = spare·s_il
    0 <= y_ilv <= s_il                           y_ilv = s_il where v is the gateway and must be in

Exact: for fixed l with s_il > 0 the point y_il·/s_il lies in a product of two hypersimplices, whose
corners are the sets themselves, so it is a mixture of them, which
:mod:`formulations.online.reads.split_quorums` finds. Latency and loads are linear in s and y.
"""

from __future__ import annotations

from formulations.online.reads.load_program import Master, optimise
from formulations.online.reads.split_quorums import NOTHING, Part, spread
from placement.errors import UnsupportedError
from placement.online.reads import (
    Quorum,
    ReadGoal,
    ReadPlan,
    ReadProblem,
    ReadStrategy,
    ThresholdQuorums,
)
from placement.support.checks import FloatArray

__all__ = ["solve_compact"]


def solve_compact(problem: ReadProblem, goal: ReadGoal) -> ReadPlan:
    """Return the optimal strategy of a problem whose quorums are thresholds.

    Raises
    ------
    UnsupportedError
        For another quorum system.
    SolverError
        See :func:`formulations.online.reads.load_program.optimise`.

    Examples
    --------
    >>> plan = solve_compact(ReadProblem.uniform(5), ReadGoal.least_load())
    >>> str(plan.status), round(plan.value, 6)
    ('optimal', 0.428571)
    """
    system = problem.quorums
    if not isinstance(system, ThresholdQuorums):
        raise UnsupportedError(
            f"the compact program takes threshold quorums, not {type(system).__name__}; "
            "solve_columns takes any"
        )
    master = Master(problem)
    alone: list[int | None] = []
    parts: list[list[Part]] = []
    for gateway in range(problem.nodes):
        share, rate = float(problem.shares[gateway]), float(problem.reads[gateway])
        total: dict[int, float] = {}
        lease = None
        if problem.leader is not None:
            wait = share * float(problem.rtt[gateway, problem.leader])
            lease = master.column(wait, {problem.leader: rate})
            total[lease] = 1.0
        found = _parts(master, problem, system, gateway, share, rate)
        total.update((part.whole, 1.0) for part in found)
        master.row(total, 1.0, 1.0)
        alone.append(lease)
        parts.append(found)
    return optimise(
        master,
        goal,
        method="compact",
        strategy_of=lambda values: _strategy(problem, alone, parts, values),
        extend=lambda prices, per_ms: False,
    )


def _parts(
    master: Master,
    problem: ReadProblem,
    system: ThresholdQuorums,
    gateway: int,
    share: float,
    rate: float,
) -> list[Part]:
    """Add the columns and rows of one gateway; one part per node that can be the last."""
    order = system.order(gateway, problem.rtt[gateway])
    found = []
    for place, last in enumerate(order):
        own = order.index(gateway) if system.include_self else place
        needed = system.size - 1 - int(own < place)
        spare = system.spare - int(own > place)
        before = [v for v in order[:place] if not (system.include_self and v == gateway)]
        after = [v for v in order[place + 1 :] if not (system.include_self and v == gateway)]
        if not (0 <= needed <= len(before) and 0 <= spare <= len(after)):
            continue
        forced = (last,) if own == place else (last, gateway)
        whole = master.column(
            share * float(problem.rtt[gateway, last]), dict.fromkeys(forced, rate)
        )
        sides: list[tuple[dict[int, int], int]] = []
        for nodes, count in ((before, needed), (after, spare)):
            side = {v: master.column(0.0, {v: rate}) for v in nodes} if count else {}
            if side:
                master.row({**dict.fromkeys(side.values(), 1.0), whole: -float(count)}, 0.0, 0.0)
            for j in side.values():
                master.row({whole: 1.0, j: -1.0}, 0.0, float("inf"))
            sides.append((side, count))
        found.append(Part(whole, forced, tuple(sides)))
    return found


def _strategy(
    problem: ReadProblem,
    alone: list[int | None],
    parts: list[list[Part]],
    values: FloatArray,
) -> ReadStrategy:
    """Turn s and y into mixtures of sets."""
    mixtures: list[dict[Quorum, float]] = []
    for gateway in range(problem.nodes):
        mixture: dict[Quorum, float] = {}
        lease = alone[gateway]
        if lease is not None and problem.leader is not None and values[lease] > NOTHING:
            mixture[problem.leader,] = float(values[lease])
        for part in parts[gateway]:
            for quorum, probability in spread(part, values).items():
                mixture[quorum] = mixture.get(quorum, 0.0) + probability
        total = sum(mixture.values())
        mixtures.append({quorum: p / total for quorum, p in mixture.items()})
    return ReadStrategy.of(problem, mixtures)
