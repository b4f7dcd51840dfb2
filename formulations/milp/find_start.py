"""A configuration to start from: the caller's, a heuristic's, or any feasible one."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

from placement.errors import LimitError, SolverError, UnsupportedError
from placement.evaluation.voter_choice import best_voters
from placement.feasibility.feasible_plans import find_feasible, violations
from placement.methods.options import Options
from placement.methods.registry import available, load_method
from placement.methods.registry import run as run_method
from placement.model.configuration import Configuration
from placement.plan import objective_value
from placement.problem import Problem
from placement.support.status import Termination

HEURISTICS = ("local-search", "best-of")
"""Methods asked for a start, the first that is registered and can take the problem."""

SHARE = 0.1
"""Share of the time limit that a heuristic may use."""


@dataclass(frozen=True, slots=True)
class Start:
    """Configuration from which the search begins."""

    configuration: Configuration | None  #: feasible; None when there is none, or none was found
    origin: str  #: who gave it
    impossible: bool = False  #: whether a complete search proved that no configuration is feasible
    interrupted: bool = False  #: whether Ctrl-C ended the heuristic
    #: heuristics that failed: a defect of theirs costs a start, not the proof
    notes: tuple[str, ...] = ()


def find_start(
    problem: Problem,
    options: Options,
    heuristic: str,
    report: Callable[[float], None] = lambda _: None,
) -> Start:
    """Return the best start found so far.

    `heuristic`: "auto" is the first of `HEURISTICS` that can; "none" any feasible configuration;
    else the name of a registered method. `report` is told the objective of its best configuration
    so far, +∞ without one. A heuristic that finds nothing proves nothing: then
    placement.feasibility.feasible_plans searches completely, and gives up on combinations that take
    too long.
    """
    if options.start is not None:
        return Start(options.start, "given")
    names = HEURISTICS if heuristic == "auto" else () if heuristic == "none" else (heuristic,)
    registered = set(available())
    limit = None if options.time_limit is None else SHARE * options.time_limit
    notes: list[str] = []
    for name in names:
        if heuristic == "auto" and name not in registered:
            continue
        try:
            plan = run_method(
                load_method(name),
                problem,
                Options(
                    time_limit=limit,
                    seed=options.seed,
                    progress=lambda progress: report(progress.incumbent),
                ),
            )
        except (UnsupportedError, LimitError):
            continue
        except SolverError as error:
            notes.append(f"no start from {name!r}: {error}")
            continue
        interrupted = plan.termination is Termination.INTERRUPTED
        if plan.configuration is not None or interrupted:
            return Start(plan.configuration, name, interrupted=interrupted, notes=tuple(notes))
    try:
        found = find_feasible(problem)
    except LimitError:
        return Start(None, "none found", notes=tuple(notes))
    origin = "feasibility search" if found else "none"
    return Start(found, origin, impossible=found is None, notes=tuple(notes))


def with_best_voters(problem: Problem, configuration: Configuration) -> Configuration:
    """Return a configuration with the voters that every method names, where they are no worse."""
    led = configuration.leader, configuration.replicas
    try:
        voters = best_voters(problem.demand, problem.rules, *led)
    except LimitError:
        voters = None
    if voters is None:
        return configuration
    named = dataclasses.replace(configuration, voters=voters)
    # the same wait; RTTs that vary may even gain by it
    worse = objective_value(problem, named) > objective_value(problem, configuration)
    return configuration if worse or violations(problem, named) else named
