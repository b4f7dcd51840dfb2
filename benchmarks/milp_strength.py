"""Strength and size of the recipes of the mixed-integer program, and the effect on times.

    python -m benchmarks run milp.strength                  about ten minutes
    python -m benchmarks run milp.strength --only ledger --seconds 300

For two operation mixes on world27 and every recipe, 5 replicas of which 3 vote, once for the whole
program and once reduced by the plan of `local-search`: variables, rows, non-zeros, LP bound as a
share of the optimum, seconds to build, for the LP, and to the proven optimum (or the gap at the
time limit). The optimum is that of method `milp` with its default recipe; every recipe that ends
must agree with it, or the run stops with an error. Single runs.

Writes benchmarks/results/milp_strength.json.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import math
from collections.abc import Iterator

import placement
from benchmarks.harness.results import Row, markdown_table, read_json
from benchmarks.harness.study import Study
from formulations.milp.lp_strength import strength
from formulations.milp.recipes import Recipe
from placement import Problem, Status


def _measure(mix: str, options: argparse.Namespace) -> Iterator[Row]:
    """Yield one row per recipe, with and without reductions.

    SolverError when two recipes prove different optima.
    """
    problem = Problem(placement.load("world27", mix=mix), replicas=5, voters=3)
    time_limit = options.seconds
    heuristic = placement.solve(problem, "local-search")
    best = placement.solve(problem, "milp", time_limit=time_limit)
    for recipe, reduce in itertools.product(Recipe, (False, True)):
        cutoff = heuristic.objective if reduce else None
        size = strength(problem, recipe, cutoff=cutoff, time_limit=time_limit)
        settings = {"recipe": recipe.value, "reduce": reduce, "leaders": "together"}
        plan = placement.solve(problem, "milp", time_limit=time_limit, settings=settings)
        proven = plan.status is Status.OPTIMAL
        both = proven and best.status is Status.OPTIMAL
        if both and not math.isclose(best.objective, plan.objective, rel_tol=1e-9):
            raise placement.SolverError(
                f"two recipes prove different optima: {best.objective!r} and {plan.objective!r}"
            )
        share = size["bound"] / best.objective
        yield {
            "recipe": recipe.value,
            "reduced": "yes" if reduce else "no",
            "variables": size["variables"],
            "binaries": size["binaries"],
            "rows": size["rows"],
            "non-zeros": size["nonzeros"],
            "LP / optimum": f"{share:.4f}" if math.isfinite(share) else "-",
            "build s": f"{size['build_seconds']:.2f}",
            "LP s": f"{size['lp_seconds']:.2f}",
            "solve s": f"{float(plan.stats.get('solve_seconds', 0)):.2f}",
            "nodes": int(float(plan.stats.get("nodes", 0))),
            "result": "optimal" if proven else f"gap {100 * plan.gap:.2g} %",
        }


def _report() -> dict[str, str]:
    """Return a line per recipe: whole program / reduced program, for both mixes."""
    document = read_json(STUDY.path)
    found = {
        (row["recipe"], mix, row["reduced"]): row for mix in STUDY.parts for row in document[mix]
    }
    columns = [("oltp", head) for head in ("variables", "rows", "LP / optimum", "solve s",
                                           "result")]  # fmt: skip
    columns += [("ledger", head) for head in ("LP / optimum", "solve s")]
    lines = (
        (recipe, *("/".join(str(found[recipe, mix, kind][head]) for kind in ("no", "yes"))
                   for mix, head in columns))
        for recipe in dict.fromkeys(recipe for recipe, *_ in found)
    )  # fmt: skip
    heads = ("recipe", "variables", "rows", "LP/optimum, oltp", "solve s", "result",
             "LP/optimum, ledger", "solve s")  # fmt: skip
    return {"milp_strength.json": markdown_table(heads, lines)}


STUDY = Study(
    "milp_strength",
    {mix: functools.partial(_measure, mix) for mix in ("oltp", "ledger")},
    {"seconds": 60.0},
    packages=("numpy", "highspy", "pyomo"),
    description=__doc__,
    page="docs/formulations.md",
    report=_report,
)
