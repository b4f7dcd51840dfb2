"""Speed and agreement of the exact methods for quorum stores.

    python -m benchmarks run quorumstore.speed                     time per key, 27 sites, N <= 5
    python -m benchmarks run quorumstore.speed --rtt measured.csv  on other RTTs (first 27 sites)
    python -m benchmarks run quorumstore.speed --failures 2        N-1C for two lost sites at once
    python -m benchmarks run quorumstore.speed --table 10000       a table of keys, 2 processes
    python -m benchmarks run quorumstore.speed --check 4           enumeration = HiGHS = CP-SAT

`--write` puts what was measured into benchmarks/results. Keys are drawn with a seed in three kinds:
``even`` (up to 50 requests at every site, the hardest: no site stands out), ``skewed`` (Dirichlet
shares, a few sites carry most requests), and ``one writer`` (reads as skewed, all writes at one
site). Times are CPU time for one key after the other in one process, tables built once; the first
key of a store has no earlier optimum to start from and is shown apart.
"""

from __future__ import annotations

import argparse
import csv
import math
import resource
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from math import comb
from pathlib import Path

import numpy as np

from benchmarks.harness.machine import describe
from benchmarks.harness.result_files import RESULTS, save_json, save_rows
from benchmarks.harness.study import Study
from formulations.quorumstore import place, solve_keys
from formulations.quorumstore.enumeration import Enumeration
from placement import datasets
from placement.quorumstore import QuorumPlan, QuorumProblem, Redirect, StoreRules
from placement.quorumstore.problem import CountArray
from placement.support.checks import FloatArray

Draw = Callable[[np.random.Generator, int], tuple[CountArray, CountArray]]


def even(rng: np.random.Generator, sites: int) -> tuple[CountArray, CountArray]:
    """Up to 50 reads and writes at every site."""
    return rng.integers(0, 50, sites), rng.integers(0, 50, sites)


def skewed(rng: np.random.Generator, sites: int) -> tuple[CountArray, CountArray]:
    """A thousand reads and about fifty writes, Dirichlet(0.15) shares."""
    share = rng.dirichlet(np.full(sites, 0.15))
    reads = rng.poisson(1000 * share)
    reads[int(np.argmax(share))] += 1
    return reads, rng.poisson(100 * share * rng.random(sites))


def one_writer(rng: np.random.Generator, sites: int) -> tuple[CountArray, CountArray]:
    """A thousand reads with Dirichlet(0.3) shares, twenty writes at one site."""
    writes = np.zeros(sites, dtype=np.int64)
    writes[rng.integers(sites)] = 20
    return rng.poisson(1000 * rng.dirichlet(np.full(sites, 0.3))) + writes, writes


KINDS: dict[str, Draw] = {"even": even, "skewed": skewed, "one writer": one_writer}


def rtt_matrix(path: str | None, sites: int) -> FloatArray:
    """RTTs of the first `sites` sites of a CSV, or of the bundled 27 regions; 0.5 ms within one."""
    if path is None:
        rtt = np.array(datasets.load("world27").site_rtt)
    else:
        with Path(path).open(newline="", encoding="utf-8") as stream:
            rows = list(csv.reader(stream))[1:]
        rtt = np.array([[float(cell) for cell in row[1:]] for row in rows])
    rtt = rtt[:sites, :sites]
    np.fill_diagonal(rtt, np.maximum(np.diagonal(rtt), 0.5))
    return rtt


def store(rtt: FloatArray, rules: StoreRules) -> QuorumProblem:
    """A key of the store, as a template."""
    ones = np.ones(len(rtt), dtype=np.int64)
    return QuorumProblem(rtt, ones, ones, rules=rules)


def models_of(largest: int, failures: int = 1) -> list[tuple[str, StoreRules]]:
    """BA, and N-1C with every redirection."""
    base = StoreRules(False, max_replicas=largest, failures=failures)
    return [("BA", base)] + [
        (f"N-1C {redirect.value}", replace(base, contingency=True, redirect=redirect))
        for redirect in Redirect
    ]


def speed(
    rtt: FloatArray, keys: int, largest: int, seed: int, failures: int
) -> list[dict[str, object]]:
    """Print and return CPU milliseconds per key, for all models and kinds of keys."""
    sizes = range(2 * failures + 1, largest + 1)
    sets = sum(comb(len(rtt), size) for size in sizes)
    print(
        f"{len(rtt)} sites, N <= {largest}, F = {failures}: {sets:,} replica sets; {keys} keys "
        "each, CPU ms per key"
    )
    print(f"{'model':<18}{'keys':<12}{'first':>8}{'mean':>8}{'median':>8}{'p90':>8}{'worst':>8}")
    rows = []
    for name, rules in models_of(largest, failures):
        template = store(rtt, rules)
        for kind, draw in KINDS.items():
            rng = np.random.default_rng(seed)
            solver = Enumeration()
            seconds = []
            for _ in range(keys):
                problem = template.with_demand(*draw(rng, len(rtt)))
                start = time.process_time()
                solver.solve(problem)
                seconds.append(time.process_time() - start)
            taken = 1000 * np.array(seconds)
            later = taken[1:] if keys > 1 else taken
            figures = {
                "first": taken[0],
                "mean": later.mean(),
                "median": np.median(later),
                "p90": np.percentile(later, 90),
                "worst": later.max(),
            }
            print(f"{name:<18}{kind:<12}" + "".join(f"{one:8.1f}" for one in figures.values()))
            rows.append(
                {"model": name, "keys": kind, "failures": failures, "largest": largest}
                | {f"{label}_ms": round(float(one), 2) for label, one in figures.items()}
            )
    print(f"peak memory of the process: {_peak()} MB")
    return rows


def _peak() -> int:
    """Largest memory this process had, MB."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def table(rtt: FloatArray, keys: int, largest: int, seed: int, processes: int) -> dict[str, object]:
    """Time a table of keys from file to file, N-1C with the extra hop, kinds mixed."""
    rng = np.random.default_rng(seed)
    template = store(rtt, StoreRules(True, max_replicas=largest))
    draws = list(KINDS.values())
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "keys.csv"), Path(folder, "configurations.csv")
        with source.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            header = [f"{side}:{site}" for side in ("reads", "writes") for site in template.sites]
            writer.writerow(["key", *header])
            for number in range(keys):
                reads, writes = draws[number % len(draws)](rng, len(rtt))
                writer.writerow([f"key{number}", *reads.tolist(), *writes.tolist()])
        began = _cpu()
        summary = solve_keys(template, source, target, processes=processes)
        spent = _cpu() - began
        print(
            f"{summary.keys:,} keys in {summary.seconds:.1f} s with {processes} processes: "
            f"{1000 * spent / summary.keys:.1f} ms of CPU per key, "
            f"{target.stat().st_size:,} bytes"
        )
    return {
        "keys": summary.keys,
        "processes": processes,
        "seconds": round(summary.seconds, 1),
        "cpu_ms_per_key": round(1000 * spent / summary.keys, 2),
        "peak_mb": _peak(),
    }


def _cpu() -> float:
    """CPU seconds of this process and of its children that have ended."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in both)


FRACTIONS = (0.5, 0.8, 0.9, 1.0)
METHODS = ("enumeration", "cp-sat", "milp")


def check(
    rtt: FloatArray, keys: int, largest: int, seed: int, limit: float
) -> list[dict[str, object]]:
    """Compare enumeration with both bisections on every model, redirection and percentile.

    A solver that does not finish within `limit` seconds is recorded with what it had proven by
    then: an interval that must contain the optimum.
    """
    rows: list[dict[str, object]] = []
    for name, rules in models_of(largest):
        for fraction in FRACTIONS:
            rng = np.random.default_rng([seed, len(rows)])
            asked = StoreRules(
                rules.contingency,
                redirect=rules.redirect,
                read_fraction=fraction,
                write_fraction=fraction,
                max_replicas=largest,
            )
            for number in range(keys):
                kind = list(KINDS)[(number + 1) % len(KINDS)]
                problem = store(rtt, asked).with_demand(*KINDS[kind](rng, len(rtt)))
                row = {"model": name, "p": fraction, "keys": kind, "number": number}
                rows.append(row | _compared(problem, limit))
                print(" ".join(f"{label}={one}" for label, one in rows[-1].items()), flush=True)
    wrong = sum(row["verdict"] == "DIFFER" for row in rows)
    unfinished = sum(row["verdict"] == "unfinished" for row in rows)
    print(
        f"{len(rows) - wrong - unfinished} of {len(rows)} keys agree, {wrong} differ, in "
        f"{unfinished} a solver ran out of time; median CPU seconds: "
        + ", ".join(
            f"{name} {np.median([float(str(row[name + '_s'])) for row in rows]):.3f}"
            for name in METHODS
        )
    )
    return rows


def _compared(problem: QuorumProblem, limit: float) -> dict[str, object]:
    """Solve one key by all methods; values, CPU seconds and the verdict."""
    plans: dict[str, QuorumPlan] = {}
    row: dict[str, object] = {}
    for name in METHODS:
        start = time.process_time()
        plans[name] = place(problem, name, time_limit=limit, certificate=False)
        row[f"{name}_ms"] = plans[name].value
        row[f"{name}_bound_ms"] = plans[name].bound
        row[f"{name}_s"] = round(time.process_time() - start, 3)
    exact = plans["enumeration"]
    # Two keys of the tie rule are common to all methods: the value, and T in normal operation.
    figures = {(plan.value, plan.normal.threshold) for plan in plans.values()}
    if len(figures) == 1 and len({plan.status for plan in plans.values()}) == 1:
        verdict = "agree"
    else:
        slow = [plan for plan in plans.values() if str(plan.termination) != "finished"]
        open_only = {exact.value} == {
            plan.value for plan in plans.values() if plan not in slow
        } and all(plan.bound <= exact.value <= plan.value for plan in slow)
        verdict = "unfinished" if slow and open_only else "DIFFER"
    return {"verdict": verdict, **row}


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rtt", help="CSV of RTTs in ms: a header, then site, RTT, RTT, …")
    parser.add_argument("--sites", type=int, default=27)
    parser.add_argument("--largest", type=int, default=5, help="N_max")
    parser.add_argument("--keys", type=int, default=200, help="keys per kind and model")
    parser.add_argument("--failures", type=int, default=1, help="F")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--table", type=int, metavar="KEYS", help="time a table of so many keys")
    parser.add_argument(
        "--check", type=int, metavar="KEYS", help="compare methods, keys per model and percentile"
    )
    parser.add_argument(
        "--time-limit", type=float, default=math.inf, metavar="S", help="per solver, with --check"
    )
    parser.add_argument("--write", action="store_true", help="into benchmarks/results")


def _run_study(options: argparse.Namespace) -> int:
    """Run one of the modes; return 1 when methods disagree."""
    rtt = rtt_matrix(options.rtt, options.sites)
    where = {
        "rtt": Path(options.rtt).name if options.rtt else "world27",
        "sites": len(rtt),
        "seed": options.seed,
    }
    if options.check:
        found = check(rtt, options.check, options.largest, options.seed, options.time_limit)
        if options.write:
            save_rows(RESULTS / "quorumstore_check.csv", found)
        return int(any(row["verdict"] == "DIFFER" for row in found))
    if options.table:
        one = table(rtt, options.table, options.largest, options.seed, options.processes)
        if options.write:
            save_json(RESULTS / "quorumstore_table.json", {"machine": describe(), **where, **one})
        return 0
    rows = speed(rtt, options.keys, options.largest, options.seed, options.failures)
    if options.write:
        name = f"quorumstore_speed_f{options.failures}_n{options.largest}.json"
        measured = {"keys": options.keys, "peak_mb": _peak(), "rows": rows}
        save_json(RESULTS / name, {"machine": describe(), **where, **measured})
    return 0


STUDY = Study(
    __doc__,
    _add_arguments,
    _run_study,
    results=("quorumstore_speed_f1_n5.json", "quorumstore_table.json", "quorumstore_check.csv"),
)
