"""E8 and E9 of :mod:`benchmarks.contingency.study`: methods, and assumptions of the model."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable

import numpy as np

from benchmarks.contingency.data import StudySize, keys_of, regions27, solve_all, store
from benchmarks.harness.pictures import COLOURS, Outcome, axes_of, ms, rows, share_of
from formulations.quorumstore.covering_solvers import CpSatCovering, HighsCovering
from formulations.quorumstore.enumeration import solve as enumerate_sets
from formulations.quorumstore.enumeration import tie_envelope
from formulations.quorumstore.threshold_bisection import solve as bisect
from heuristics.quorumstore import coverage_greedy, local_search
from placement.quorumstore import QuorumPlan, QuorumProblem, Redirect, StoreRules

__all__ = ["e8", "e9"]

_LIMIT = 20.0
"""Seconds a solver has for a key."""

_METHODS: dict[str, Callable[[QuorumProblem], QuorumPlan]] = {
    "enumeration": enumerate_sets,
    "cp-sat": lambda problem: bisect(problem, CpSatCovering(), time_limit=_LIMIT),
    "milp": lambda problem: bisect(problem, HighsCovering(), time_limit=_LIMIT),
    "greedy": coverage_greedy,
    "local search": lambda problem: local_search(problem, rng=np.random.default_rng(0)),
}


def e8(scale: StudySize) -> Outcome:
    """E8: methods for N-1C by the largest N: CPU time and gap to the proven optimum."""
    sites, rtt = regions27(scale.latency)
    count = max(2, scale.keys // 100)
    seconds: dict[str, list[float]] = {name: [] for name in _METHODS}
    body: list[list[object]] = []
    sizes = range(3, 8)
    for largest in sizes:
        template = store(sites, rtt, StoreRules(True, max_replicas=largest))
        few = dataclasses.replace(scale, keys=count, snapshots=0)
        problems = [template.with_demand(*key) for key in keys_of(template, "timeline", few)]
        optima = [enumerate_sets(problem).value for problem in problems]
        for name, method in _METHODS.items():
            began = time.process_time()
            plans = [method(problem) for problem in problems]
            spent = (time.process_time() - began) / count
            gaps = np.array([p.value / best - 1 for p, best in zip(plans, optima, strict=True)])
            proven = np.array([str(plan.status) == "optimal" for plan in plans])
            seconds[name].append(spent)
            worst = "none found" if math.isinf(gaps.max()) else f"{100 * gaps.max():.1f} %"
            body.append([largest, name, f"{spent:.3f}", share_of(proven), worst])
    figure, (axes,) = axes_of(1, 3.8)
    for index, (name, taken) in enumerate(seconds.items()):
        axes.plot(list(sizes), taken, marker="o", label=name, color=COLOURS[index])
    axes.set(xlabel="largest N", ylabel="CPU seconds per key", yscale="log", xticks=list(sizes))
    axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    header = ["N_max", "method", "CPU s per key", "proven", "largest gap"]
    words = f"{count} timeline keys each; solvers had {_LIMIT:.0f} s per key."
    return Outcome([*rows(header, body), "", words], figure)


def e9(scale: StudySize) -> Outcome:
    """E9: what the percentile, the redirection and the tie rule do to BA and N-1C."""
    sites, rtt = regions27(scale.latency)
    shares = (0.5, 0.9, 0.95, 0.99, 1.0)
    few = dataclasses.replace(scale, keys=max(5, scale.keys // 8), snapshots=0)
    fewest = dataclasses.replace(few, keys=max(3, few.keys // 8))
    figure, three = axes_of(3)
    body: list[list[object]] = []
    for axes, redirect in zip(three, Redirect, strict=True):
        curves: dict[str, list[float]] = {}
        for share in shares:
            cells: list[object] = [redirect.value, f"{share:g}"]
            for name, contingency in (("BA", False), ("N-1C", True)):
                rules = StoreRules(
                    contingency, redirect=redirect, read_fraction=share, write_fraction=share
                )
                template = store(sites, rtt, rules)
                plans = solve_all(template, keys_of(template, "article", few))
                normal = [plan.normal.threshold for plan in plans]
                worst = [plan.worst.threshold for plan in plans]
                cells += [ms(normal), ms(worst)]
                curves.setdefault(f"{name}, normal", []).append(float(np.median(normal)))
                curves.setdefault(f"{name}, worst loss", []).append(float(np.median(worst)))
            rules = StoreRules(redirect=redirect, read_fraction=share, write_fraction=share)
            template = store(sites, rtt, rules)
            found = [
                tie_envelope(template.with_demand(*key))
                for key in keys_of(template, "article", fewest)
            ]
            ties = [one for one in found if one is not None]
            best, worst = ([one.failure.best for one in ties], [one.failure.worst for one in ties])
            cells += [int(np.median([one.count for one in ties])), f"{ms(best)} to {ms(worst)}"]
            body.append(cells)
        for index, (name, values) in enumerate(curves.items()):
            axes.plot(
                range(len(shares)),
                values,
                "--" if "worst" in name else "-",
                marker="o",
                label=name,
                color=COLOURS[index // 2],
            )
        axes.set_xticks(range(len(shares)), [f"{share:g}" for share in shares])
        axes.set(xlabel="p", ylabel="median threshold over keys, ms", title=redirect.value)
        axes.legend(fontsize=8)
    header = ["redirection", "p", "BA normal", "BA worst loss", "N-1C normal", "N-1C worst loss"]
    header += ["BA optima", "their worst loss, best to worst tie"]
    words = f"{few.keys} article keys, ties of {fewest.keys} of them; medians over keys, ms."
    return Outcome([*rows(header, body), "", words], figure)
