"""Leader by leader: one small program for each leader instead of one large one for all.

Exactly one site leads, so the optimum is the least of the optima over the leaders:

    min over all configurations  =  min over ℓ of  min over the configurations that ℓ leads.

With the leader fixed the product of "c is served here" and "ℓ leads" is no product any more, and
the quorum wait is a choice among the radii of one site. The relaxation is tight, and the program
smaller by a factor of |L|. Most leaders need no integer search: the bound of their relaxation
already reaches the objective of a known configuration. So

1. Every leader whose static bound (:mod:`formulations.milp.reduce_program`) does not reach it has
   its relaxation solved, the most promising first. The bound comes from the row duals by weak
   duality with the rounding errors bounded (:mod:`formulations.solvers.safe_bounds`), not from the
   solver.
2. The remaining leaders are solved as integer programs, least bound first, each with the best plan
   of the others as its cutoff.

At any moment the least bound over the leaders is a proven bound of the problem.
"""

from __future__ import annotations

import dataclasses

from formulations.milp.cutting_rounds import CuttingRounds
from formulations.milp.program_data import ProgramData
from formulations.milp.reduce_program import leader_bounds
from placement.support.status import Termination, least_bound

__all__ = ["search_per_leader"]

_ROUNDING = 1e-12
"""Relative allowance for the sums of the static bounds."""

_ENDS = (Termination.TIME_LIMIT, Termination.INTERRUPTED)
"""Reasons that end the search of all leaders, not that of one alone."""


def search_per_leader(search: CuttingRounds) -> None:
    """Search the leaders of a problem one by one.

    Parameters
    ----------
    search
        With a configuration to beat. On return, also by an exception, it holds the best
        configuration, a proven bound and why the search ended.

    Notes
    -----
    O(L) programs of O(C·S) columns, of which one is in memory at a time.
    """
    bounds = {
        leader: bound * (1 - _ROUNDING) for leader, bound in leader_bounds(search.terms).items()
    }
    integer = 0
    for stage in (CuttingRounds.relax, CuttingRounds.run_rounds):
        for leader in sorted(bounds, key=lambda leader: bounds[leader]):
            _conclude(search, bounds)
            search.report()
            rest = least_bound(*(b for other, b in bounds.items() if other != leader))
            part = dataclasses.replace(
                search,
                terms=_led_by(search.terms, leader),
                bound=bounds[leader],
                rest=rest,
                termination=Termination.FINISHED,
            )
            if part.settled:
                continue
            integer += stage is CuttingRounds.run_rounds
            try:
                stage(part)
            finally:
                if part.best is not None:
                    search.offer(part.best)
                bounds[leader] = max(bounds[leader], part.bound)
                _conclude(search, bounds)
            if part.termination in _ENDS:
                search.termination = part.termination
                return
    search.stats["leaders"] = len(bounds)
    search.stats["leaders_searched"] = integer
    if not search.settled:
        search.termination = Termination.WORK_LIMIT
    elif not search.proven:
        search.termination = Termination.GAP_LIMIT


def _conclude(search: CuttingRounds, bounds: dict[int, float]) -> None:
    """Raise the bound of the problem to the least over the leaders."""
    search.bound = max(search.bound, least_bound(*bounds.values(), search.value))


def _led_by(terms: ProgramData, leader: int) -> ProgramData:
    """Terms of the configurations that one site leads."""
    return dataclasses.replace(
        terms,
        leaders=(leader,),
        radii={(k, ell): waits for (k, ell), waits in terms.radii.items() if ell == leader},
        direct={leader: terms.direct[leader]},
        led={key: wait for key, wait in terms.led.items() if key[2] == leader},
    )
