"""Tier 3 by mixed-integer programs, solved by HiGHS (method ``milp``), a reference.

Leader by leader: one site leads, so the optimum is the least of the optima over the leaders. With
the leader fixed the product of "c is served here" and "ℓ leads" is no product any more, and the
quorum wait is a choice among the radii of one site. :mod:`formulations.linear.leader_search` has
these programs, :mod:`formulations.linear.milp` their bounds, which are safe in rounding.

All leaders together: one program in Pyomo with every constraint of the problem;
:mod:`formulations.milp` says how it is put together, :mod:`formulations.milp.cutting_rounds` what
its bound claims. Exponential at worst; tens of sites in seconds to minutes.
"""

from __future__ import annotations

import dataclasses
import math
import time

from formulations.linear.leader_program import beyond_rows
from formulations.linear.milp import solve_measures
from formulations.milp.cutting_rounds import CuttingRounds
from formulations.milp.find_start import Start, find_start
from formulations.milp.program_data import program_data
from formulations.milp.recipes import Recipe
from placement.methods.options import Options, Setting
from placement.methods.registry import Method
from placement.plan import Plan
from placement.problem import Problem
from placement.support.status import Termination, end_early


def solve(problem: Problem, options: Options) -> Plan:
    """Answer a problem leader by leader, or by one program.

    At a limit, or after Ctrl-C, the plan is the best configuration so far with its bound.
    SolverError when HiGHS fails, or claims what the evaluator refutes.
    """
    if not _together(options):
        return solve_measures(problem, options)
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
    with end_early(search):
        search.use_static_bound()
        start = find_start(problem, options, str(options.settings["start"]), search.report)
        search.stats.update(start=start.origin, start_seconds=time.perf_counter() - began)
        search.notes.extend(start.notes)
        if start.configuration is not None:
            search.offer(start.configuration)
        search.report()
        if start.interrupted:
            raise KeyboardInterrupt
        search.run_rounds()
    bound, termination, reasons = search.bound, search.termination, list[str]()
    if search.best is None and start.impossible:
        bound, termination = math.inf, Termination.FINISHED
        reasons = ["a complete search found no configuration that obeys all rules"]
        if search.infeasible:
            reasons[0] += ", and HiGHS, with and without presolve, found none either"
    elif search.infeasible:
        return _second_search(search)
    return Plan.of(
        problem,
        search.best,
        method=METHOD.name,
        bound=bound,
        termination=termination,
        reasons=reasons,
        notes=search.notes,
        stats=search.stats,
    )


def _together(options: Options) -> bool:
    """Return whether one program holds all leaders; "auto": where a setting asks for it."""
    if options.settings["leaders"] != "auto":
        return options.settings["leaders"] == "together"
    return any(options.settings[k] != METHOD.settings[k].default for k in _OF_ONE_PROGRAM)


_OF_ONE_PROGRAM = ("recipe", "proof", "reduce")


def _second_search(search: CuttingRounds) -> Plan:
    """Look again leader by leader, where HiGHS calls the program of all leaders infeasible.

    A mixed-integer solver's word alone is not enough: HiGHS has called feasible programs
    infeasible. The first second witness is the complete search of
    placement.feasibility.feasible_plans; this is for where that gives up.
    """
    word = "HiGHS called the program of all leaders infeasible, with presolve and without"
    left = search.deadline - time.perf_counter() if math.isfinite(search.deadline) else None
    quick = dataclasses.replace(
        search.options,
        time_limit=None if left is None else max(0.0, left),
        settings={**search.options.settings, "start": "none"},
    )
    second = solve_measures(search.problem, quick)
    told = f"{word}; this was found leader by leader"
    return second.replace(notes=(*search.notes, told, *second.notes))


METHOD = Method(
    name="milp",
    call=solve,
    summary="mixed-integer programs, leader by leader or one in Pyomo, solved by HiGHS",
    exact=True,
    refuses=beyond_rows,
    objectives=("mean", "measures", "waits"),
    cost_parts=("near reads", "votes"),
    settings={
        "recipe": Setting(
            "auto",
            "the formulation; all have the same optimum, 'auto' takes the strongest that fits",
            choices=("auto", *(recipe.value for recipe in Recipe)),
        ),
        "start": Setting("auto", "heuristic of the first plan, 'auto', or 'none' for any plan"),
        "proof": Setting(
            "solver",
            "the bound: HiGHS's less its tolerances, or 'safe' LP bounds in a tree of our own",
            choices=("solver", "safe"),
        ),
        "leaders": Setting(
            "auto",
            "one program for all leaders, or one for each; 'auto': apart, unless another setting "
            "is about the one program",
            choices=("auto", "together", "apart"),
        ),
        "reduce": Setting(True, "leave out what the first plan shows to be too expensive"),
    },
    complexity="exponential at worst; O(C·S·L) columns for S sites and L leaders left",
    reference="derivations in formulations.milp.recipes",
)
