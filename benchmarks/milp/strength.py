"""Strength and size of the recipes of the mixed-integer program, and the effect on times.

    python -m benchmarks run milp.strength                     the bundled data sets, about ten
    minutes python -m benchmarks run milp.strength --sets aws --mixes ledger --replicas 5 --voters 3
    python -m benchmarks run milp.strength --skip-solve        sizes and LP bounds only python -m
    benchmarks run milp.strength --sets globe60 --mixes oltp --recipes per-client chain \
        --time-limit 300 --output benchmarks/results --name milp_strength_globe60

`globeN` is a generated instance of N sites that are their own clients, seed 1.

For every data set, operation mix and recipe, once for the whole program and once reduced by the
plan of `local-search`: variables, rows, non-zeros, LP bound as a share of the optimum, seconds to
build, for the LP, and to the proven optimum (or the gap at the time limit). The optimum is that of
method `milp` with its default recipe; every recipe that ends must agree with it, or the run stops
with an error.

Prints a table and the peak memory of the process, and writes results/milp_strength.csv, the same
table as .md, and the machine and the peak memory as .json. Timings are single runs.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import resource
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import placement
from benchmarks.harness.doc_pages import markdown_table
from benchmarks.harness.machine import describe
from benchmarks.harness.result_files import (
    RESULTS,
    read_rows,
    save_csv,
    save_json,
)
from benchmarks.harness.study import Study
from formulations.milp.lp_strength import strength
from formulations.milp.recipes import Recipe
from placement import Instance, Plan, Problem, Status
from placement.workloads.fleets import mix_shares

HEADINGS = (
    "set",
    "mix",
    "recipe",
    "reduced",
    "variables",
    "binaries",
    "rows",
    "non-zeros",
    "LP / optimum",
    "build s",
    "LP s",
    "solve s",
    "nodes",
    "result",
)


@dataclass(frozen=True, slots=True)
class RecipeSize:
    """Line of the table, in the order of `HEADINGS`."""

    data_set: str
    mix: str
    recipe: str
    reduced: str
    variables: int
    binaries: int
    rows: int
    nonzeros: int
    lp_share: str
    build: str
    lp: str
    solve: str
    nodes: int | str
    result: str


def measure(
    name: str, mix: str, problem: Problem, recipes: Sequence[Recipe], time_limit: float, solve: bool
) -> Iterator[RecipeSize]:
    """Yield one row per recipe, with and without reductions.

    Raises
    ------
    placement.SolverError
        When two recipes prove different optima.
    """
    heuristic = placement.solve(problem, "local-search")
    best = placement.solve(problem, "milp", time_limit=time_limit)
    for recipe in recipes:
        for reduced in (False, True):
            cutoff = heuristic.objective if reduced else None
            size = strength(problem, recipe, cutoff=cutoff, time_limit=time_limit)
            solved = _solve(problem, recipe, reduced, time_limit) if solve else None
            if solved is not None:
                _compare(best, solved)
            share = size.bound / best.objective
            yield RecipeSize(
                data_set=name,
                mix=mix,
                recipe=recipe.value,
                reduced="yes" if reduced else "no",
                variables=size.variables,
                binaries=size.binaries,
                rows=size.rows,
                nonzeros=size.nonzeros,
                lp_share=f"{share:.4f}" if math.isfinite(share) else "-",
                build=f"{size.build_seconds:.2f}",
                lp=f"{size.lp_seconds:.2f}",
                solve="-" if solved is None else f"{_number(solved, 'solve_seconds'):.2f}",
                nodes="-" if solved is None else int(_number(solved, "nodes")),
                result=_result(solved),
            )


def _solve(problem: Problem, recipe: Recipe, reduced: bool, time_limit: float) -> Plan:
    return placement.solve(
        problem,
        "milp",
        time_limit=time_limit,
        settings={"recipe": recipe.value, "reduce": reduced, "leaders": "together"},
    )


def _compare(best: Plan, plan: Plan) -> None:
    proven = best.status is Status.OPTIMAL and plan.status is Status.OPTIMAL
    if proven and not math.isclose(best.objective, plan.objective, rel_tol=1e-9):
        raise placement.SolverError(
            f"two recipes prove different optima: {best.objective!r} and {plan.objective!r}"
        )


def _number(plan: Plan, name: str) -> float:
    return float(plan.stats.get(name, 0))


def _result(plan: Plan | None) -> str:
    if plan is None:
        return "-"
    if plan.status is Status.OPTIMAL:
        return "optimal"
    return f"gap {100 * plan.gap:.2g} %"


def world(name: str, mix: str) -> Instance:
    """Return a bundled data set, or for `globeN` N random sites on a globe.

    RTTs of `globeN`: 1 ms per 100 km of great circle, times 1.6, plus a gamma-distributed detour.
    """
    if not name.startswith("globe"):
        return placement.load(name, mix=mix)
    count = int(name.removeprefix("globe"))
    rng = np.random.default_rng(1)
    points = rng.normal(size=(count, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    kilometres = 6371 * np.arccos(np.clip(points @ points.T, -1, 1))
    rtt = 1.6 * kilometres / 100 + rng.gamma(2, 4, (count, count))
    rtt = (rtt + rtt.T) / 2
    between, local = rtt.copy(), rtt.copy()
    np.fill_diagonal(between, 0.0)
    np.fill_diagonal(local, 0.8)
    weights = 1e6 * (rng.pareto(1.2, count) + 0.1)
    return Instance(
        sites=tuple(f"s{i}" for i in range(count)),
        clients=tuple(f"c{i}" for i in range(count)),
        client_rtt=local,
        site_rtt=between,
        counts=weights[:, np.newaxis] * mix_shares(mix),
        name=name,
    )


def save(rows: Sequence[RecipeSize], about: dict[str, object], folder: Path, name: str) -> None:
    """Write rows as CSV, and the machine and the limits as JSON."""
    save_csv(folder / f"{name}.csv", HEADINGS, map(dataclasses.astuple, rows))
    save_json(folder / f"{name}.json", about)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sets", nargs="+", default=["world27", "aws"], help="data sets")
    parser.add_argument("--mixes", nargs="+", default=["oltp", "ledger"], help="operation mixes")
    names = [recipe.value for recipe in Recipe]
    parser.add_argument("--recipes", nargs="+", default=names, choices=names)
    parser.add_argument("--replicas", type=int, default=5)
    parser.add_argument("--voters", type=int, default=3)
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds per solve")
    parser.add_argument("--skip-solve", action="store_true", help="sizes and LP bounds only")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder for the files")
    parser.add_argument("--name", default="milp_strength", help="of the files, without an ending")


def _run_study(chosen: argparse.Namespace) -> int:
    """Run the benchmark."""
    rows: list[RecipeSize] = []
    print("  ".join(HEADINGS))
    for name in chosen.sets:
        for mix in chosen.mixes:
            problem = Problem(world(name, mix), replicas=chosen.replicas, voters=chosen.voters)
            recipes = [Recipe(value) for value in chosen.recipes]
            solve = not chosen.skip_solve
            for row in measure(name, mix, problem, recipes, chosen.time_limit, solve):
                rows.append(row)
                print("  ".join(map(str, dataclasses.astuple(row))), flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak resident memory {peak:.0f} MiB")
    about = {"machine": describe(), "time limit s": chosen.time_limit, "peak MiB": round(peak)}
    save(rows, about, chosen.output, chosen.name)
    return 0


def _report() -> dict[str, str]:
    """Return a line per recipe: whole program / reduced program, for both mixes."""
    rows = read_rows(RESULTS / "milp_strength.csv")
    pairs: dict[tuple[str, str], dict[str, dict[str, str]]] = {}
    for row in rows:
        pairs.setdefault((row["recipe"], row["mix"]), {})[row["reduced"]] = row

    def cell(recipe: str, mix: str, head: str) -> str:
        return "/".join(pairs[recipe, mix][kind][head] for kind in ("no", "yes"))

    lines = [
        (
            recipe, cell(recipe, "oltp", "variables"), cell(recipe, "oltp", "rows"),
            cell(recipe, "oltp", "LP / optimum"), cell(recipe, "oltp", "solve s"),
            cell(recipe, "oltp", "result"), cell(recipe, "ledger", "LP / optimum"),
            cell(recipe, "ledger", "solve s"),
        )
        for recipe in dict.fromkeys(row["recipe"] for row in rows)
    ]  # fmt: skip
    heads = ("recipe", "variables", "rows", "LP/optimum, oltp", "solve s", "result",
             "LP/optimum, ledger", "solve s")  # fmt: skip
    return {"milp_strength.csv": markdown_table(heads, lines)}


STUDY = Study(
    __doc__,
    _add_arguments,
    _run_study,
    results=("milp_strength.csv", "milp_strength.json"),
    page="docs/formulations.md",
    report=_report,
)
