"""Speed of the exact enumeration for quorum stores.

    python -m benchmarks run quorumstore.speed --latency DIR   27 measured AWS regions, N <= 5
    python -m benchmarks run quorumstore.speed --only speed    time per key, on modelled RTTs
    python -m benchmarks run quorumstore.speed --failures 2    N-1C for two lost sites at once

Keys are drawn with a seed in three kinds: ``even`` (up to 50 requests at every site, the hardest:
no site stands out), ``skewed`` (Dirichlet shares, a few sites carry most requests), and ``one
writer`` (reads as skewed, all writes at one site). Times are CPU time for one key after the other
in one process, tables built once; the first key of a store has no earlier optimum to start from and
is shown apart. The part `table` times a table of keys of all kinds from file to file.

Writes benchmarks/results/quorumstore.json.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.harness.machine import cpu_seconds, most_memory
from benchmarks.harness.results import Row, measured_file, save_csv
from benchmarks.harness.study import Study
from benchmarks.harness.tier3_worlds import MATRICES, read_matrix
from formulations.quorumstore import solve_keys
from formulations.quorumstore.enumeration import Enumeration
from placement import datasets
from placement.quorumstore import QuorumProblem, Redirect, StoreRules
from placement.quorumstore.problem import CountArray

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


def _store(options: argparse.Namespace, rules: StoreRules) -> QuorumProblem:
    """A key of the store, as a template: 27 sites, at least 0.5 ms within one."""
    if options.latency is None:
        rtt = np.array(datasets.load("world27").site_rtt)
    else:
        rtt = read_matrix(measured_file(options.latency, MATRICES["aws-2025"]))[1][:27, :27].copy()
    np.fill_diagonal(rtt, np.maximum(np.diagonal(rtt), 0.5))
    ones = np.ones(len(rtt), dtype=np.int64)
    return QuorumProblem(rtt, ones, ones, rules=rules)


def _speed(options: argparse.Namespace) -> Iterator[Row]:
    """Yield CPU milliseconds per key of BA, and of N-1C with every redirection."""
    base = StoreRules(False, max_replicas=options.largest, failures=options.failures)
    models = {"BA": base} | {
        f"N-1C {redirect.value}": replace(base, contingency=True, redirect=redirect)
        for redirect in Redirect
    }
    for name, rules in models.items():
        template = _store(options, rules)
        for kind, draw in KINDS.items():
            rng = np.random.default_rng(options.seed)
            solver = Enumeration()
            seconds = []
            for _ in range(options.keys):
                problem = template.with_demand(*draw(rng, len(template.sites)))
                start = time.process_time()
                solver.solve(problem)
                seconds.append(time.process_time() - start)
            taken = 1000 * np.array(seconds)
            later = taken[1:] if len(taken) > 1 else taken
            figures = {
                "first": taken[0],
                "mean": later.mean(),
                "median": np.median(later),
                "p90": np.percentile(later, 90),
                "worst": later.max(),
            }
            yield {"model": name, "keys": kind} | {
                f"{label}_ms": round(float(one), 2) for label, one in figures.items()
            }


def _table(options: argparse.Namespace) -> Iterator[Row]:
    """Time a table of keys from file to file, N-1C with the extra hop, kinds mixed."""
    rng = np.random.default_rng(options.seed)
    template = _store(options, StoreRules(True, max_replicas=options.largest))
    draws = list(KINDS.values())
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "keys.csv"), Path(folder, "configurations.csv")
        heads = [f"{side}:{site}" for side in ("reads", "writes") for site in template.sites]
        drawn = (
            np.concatenate(draws[number % len(draws)](rng, len(template.sites)))
            for number in range(10 * options.keys)
        )
        rows = ([f"key{number}", *counts.tolist()] for number, counts in enumerate(drawn))
        save_csv(source, ["key", *heads], rows)
        began = cpu_seconds()
        summary = solve_keys(template, source, target, processes=2)
        spent = cpu_seconds() - began
    yield {
        "keys": summary.keys,
        "processes": 2,
        "seconds": round(summary.seconds, 1),
        "cpu_ms_per_key": round(1000 * spent / summary.keys, 2),
        "peak_mb": round(most_memory() / 1.048576),
    }


STUDY = Study(
    "quorumstore",
    {"speed": _speed, "table": _table},
    {"keys": 1000, "largest": 5, "failures": 1, "seed": 1},
    apart=True,
    folders=("latency",),
    description=__doc__,
)
