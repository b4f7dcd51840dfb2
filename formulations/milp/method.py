"""Tier 3 by a mixed-integer program in Pyomo, solved by HiGHS (method ``milp``), a reference.

One program with every constraint of the problem, solved whole or leader by leader;
:mod:`formulations.milp` says how it is put together, :mod:`formulations.milp.cutting_rounds` what
its bound claims. Exponential at worst; tens of sites in seconds to minutes.

Leader by leader there is one small program for each leader instead of one large one for all.
Exactly one site leads, so the optimum is the least of the optima over the leaders:

    min over all configurations  =  min over ℓ of  min over the configurations that ℓ leads.

With the leader fixed the product of "c is served here" and "ℓ leads" is no product any more, and
the quorum wait is a choice among the radii of one site. The relaxation is tight, and the program
smaller by a factor of |L|. Most leaders need no integer search: the bound of their relaxation
already reaches the objective of a known configuration. So

1. Every leader whose static bound (:mod:`formulations.milp.program_data`) does not reach it has
   its relaxation solved, the most promising first. The bound comes from the row duals by weak
   duality with the rounding errors bounded (:mod:`formulations.solvers.safe_bounds`), not from the
   solver.
2. The remaining leaders are solved as integer programs, least bound first, each with the best plan
   of the others as its cutoff.

At any moment the least bound over the leaders is a proven bound of the problem.
"""

from __future__ import annotations

import dataclasses
import math
import time

from formulations.exact.reduced_problem import leader_groups
from formulations.linear.leader_program import beyond_rows
from formulations.milp.cutting_rounds import CuttingRounds
from formulations.milp.find_start import Start, find_start
from formulations.milp.program_data import ProgramData, leader_bounds, program_data
from formulations.milp.recipes import Recipe
from placement.errors import LimitError, UnsupportedError
from placement.methods.options import Options, Setting
from placement.methods.registry import Method, available, load_method
from placement.methods.registry import run as run_method
from placement.plan import Plan
from placement.problem import Problem
from placement.support.status import Status, Termination, least_bound

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


REFEREES = ("cp-sat", "exhaustive")
"""Methods that may confirm an infeasibility that the complete search could not decide."""


def solve(problem: Problem, options: Options) -> Plan:
    """Answer a problem by mixed-integer programming.

    Parameters
    ----------
    problem, options
        See :mod:`placement.methods`. Settings: ``recipe``, "auto" or a value of
        :class:`formulations.milp.recipes.Recipe`; ``start``, the heuristic that gives the first
        configuration; ``proof``, "solver" or "safe", see :mod:`formulations.milp.cutting_rounds`;
        ``reduce``, whether that configuration may be used to leave out what costs too much;
        ``leaders``, whether one program holds all leaders ("together") or each has its own
        ("apart"); "auto" takes them apart when a first configuration is known and may be used, and
        a cost depends on the leader.

    Returns
    -------
    Plan
        With build and solve time, size and nodes in `stats`. At a limit, or after Ctrl-C, the best
        configuration so far with its bound.

    Raises
    ------
    SolverError
        When HiGHS fails, or claims what the evaluator refutes.
    """
    began = time.perf_counter()
    deadline = math.inf if options.time_limit is None else began + options.time_limit
    name = str(options.settings["recipe"])
    search = CuttingRounds(
        problem=problem,
        options=options,
        recipe=None if name == "auto" else Recipe(name),
        terms=program_data(problem),
        reduce=bool(options.settings["reduce"]),
        safe=options.settings["proof"] == "safe",
        began=began,
        deadline=deadline,
    )
    start = Start(None, "none")
    search.stats["proof"] = str(options.settings["proof"])
    try:
        search.use_static_bound()
        start = find_start(problem, options, str(options.settings["start"]), search.report)
        search.stats.update(start=start.origin, start_seconds=time.perf_counter() - began)
        search.notes.extend(start.notes)
        if start.configuration is not None:
            search.offer(start.configuration)
        search.report()
        if start.interrupted:
            raise KeyboardInterrupt
        if _apart(search, str(options.settings["leaders"])):
            search_per_leader(search)
        else:
            search.run_rounds()
    except KeyboardInterrupt:
        search.termination = Termination.INTERRUPTED
    if search.best is None and (start.impossible or search.infeasible):
        return _no_plan(search, start)
    return _plan(search, bound=search.bound, termination=search.termination)


def _apart(search: CuttingRounds, leaders: str) -> bool:
    """Return whether to solve leader by leader; without a plan every leader costs a tree."""
    if search.best is None:
        return False
    several = len(leader_groups(search.problem)) > 1
    return leaders == "apart" or (leaders == "auto" and search.reduce and several)


def _no_plan(search: CuttingRounds, start: Start) -> Plan:
    """Say "infeasible" when two independent searches agree; otherwise that nothing is known.

    A mixed-integer solver's word alone is not enough: HiGHS has called feasible programs
    infeasible. The second witness is the complete search of placement.feasibility.feasible_plans,
    or, where that gives up, another exact method.
    """
    if start.impossible:
        witness = "a complete search found no configuration that obeys all rules"
        if search.infeasible:
            witness += ", and HiGHS, with and without presolve, found none either"
        return _plan(search, bound=math.inf, reasons=(witness,))
    for name in REFEREES:
        confirmed = _ask(name, search)
        if confirmed is None:
            continue
        if confirmed.configuration is not None:
            search.notes.append(
                f"HiGHS called the problem infeasible, with presolve and without; this is the plan "
                f"of method {name!r}"
            )
            search.offer(confirmed.configuration)
            return _plan(search, bound=confirmed.bound, termination=confirmed.termination)
        if confirmed.status is Status.INFEASIBLE:
            witness = (
                f"HiGHS, with and without presolve, and method {name!r} found no configuration"
            )
            return _plan(search, bound=math.inf, reasons=(f"{witness} that obeys all rules",))
    search.notes.append(
        "HiGHS found no feasible configuration, with and without presolve, but nothing else could "
        "confirm that there is none"
    )
    return _plan(search, bound=-math.inf, termination=Termination.WORK_LIMIT)


def _plan(
    search: CuttingRounds,
    *,
    bound: float,
    termination: Termination = Termination.FINISHED,
    reasons: tuple[str, ...] = (),
) -> Plan:
    return Plan.of(
        search.problem,
        search.best,
        method=METHOD.name,
        bound=bound,
        termination=termination,
        reasons=reasons,
        notes=search.notes,
        stats=search.stats,
    )


def _ask(name: str, search: CuttingRounds) -> Plan | None:
    """Ask another exact method; None when there is none, or it cannot take the problem."""
    if name not in available():
        return None
    left = None
    if math.isfinite(search.deadline):
        left = max(0.0, search.deadline - time.perf_counter())
    try:
        return run_method(
            load_method(name),
            search.problem,
            Options(time_limit=left, progress=lambda _: search.report()),
        )
    except (UnsupportedError, LimitError):
        return None


METHOD = Method(
    name="milp",
    call=solve,
    summary="one mixed-integer program for everything, in Pyomo, solved by HiGHS",
    exact=True,
    refuses=beyond_rows,
    objectives=(
        "mean",
        "measures",
        "waits",
    ),
    cost_parts=("near reads", "votes"),
    settings={
        "recipe": Setting(
            "auto",
            "the formulation; all have the same optimum, 'auto' takes the strongest that fits",
            choices=("auto", *(recipe.value for recipe in Recipe)),
        ),
        "start": Setting(
            "auto", "heuristic that gives the first plan, 'auto', or 'none' for any feasible plan"
        ),
        "proof": Setting(
            "solver",
            "the bound: HiGHS's less its tolerances, or 'safe' LP bounds in a tree of our own",
            choices=("solver", "safe"),
        ),
        "leaders": Setting(
            "auto",
            "one program for all leaders, or one for each; 'auto': apart once there is a plan, "
            "unless no cost depends on the leader",
            choices=("auto", "together", "apart"),
        ),
        "reduce": Setting(True, "leave out what the first plan shows to be too expensive"),
    },
    complexity="exponential at worst; O(C·S·L) columns for S sites and L leaders left",
    reference="derivations in formulations.milp.recipes",
)
