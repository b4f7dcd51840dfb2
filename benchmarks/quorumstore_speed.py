"""Speed and agreement of the exact methods for quorum stores.

    python -m benchmarks.quorumstore_speed                     time per key, 27 sites, N <= 5
    python -m benchmarks.quorumstore_speed --rtt measured.csv  on other RTTs (first 27 sites)
    python -m benchmarks.quorumstore_speed --table 10000       a whole table of keys, 2 processes
    python -m benchmarks.quorumstore_speed --check 12          enumeration = HiGHS = CP-SAT

Keys are drawn with a seed in three kinds: ``even`` (up to 50 requests at every site, the hardest:
no site stands out), ``skewed`` (Dirichlet shares, a few sites carry most requests), and
``one writer`` (reads as skewed, all writes at one site). Times are for one key after the other in
one process, tables built once; the first key of a store has no earlier optimum to start from and is
shown apart.
"""

from __future__ import annotations

import argparse
import csv
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from formulations.quorumstore.bisection import solve as bisect
from formulations.quorumstore.covering_cpsat import CpSatCovering
from formulations.quorumstore.covering_milp import HighsCovering
from formulations.quorumstore.enumerate import Enumeration
from formulations.quorumstore.keys import progress_to, solve_keys
from formulations.quorumstore.tables import SetTables
from placement import datasets
from placement.checks import FloatArray
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


def speed(rtt: FloatArray, keys: int, largest: int, seed: int) -> None:
    """Print milliseconds per key for BA and N-1C, all redirections and kinds of keys."""
    began = time.perf_counter()
    tables = SetTables.of(store(rtt, StoreRules(max_replicas=largest)))
    sets = sum(len(block.sets) for size in tables.kept for block in tables.blocks(size))
    print(
        f"{len(rtt)} sites, N <= {largest}: {sets:,} replica sets, tables in "
        f"{1000 * (time.perf_counter() - began):.0f} ms; {keys} keys each, ms per key"
    )
    print(f"{'model':<18}{'keys':<12}{'first':>8}{'mean':>8}{'median':>8}{'p90':>8}{'worst':>8}")
    models = [("BA", StoreRules(False, max_replicas=largest))]
    models += [
        (f"N-1C {redirect.value}", StoreRules(True, redirect=redirect, max_replicas=largest))
        for redirect in Redirect
    ]
    for name, rules in models:
        template = store(rtt, rules)
        for kind, draw in KINDS.items():
            rng = np.random.default_rng(seed)
            solver = Enumeration(SetTables.of(template))
            seconds = []
            for _ in range(keys):
                problem = template.with_demand(*draw(rng, len(rtt)))
                start = time.perf_counter()
                solver.solve(problem)
                seconds.append(time.perf_counter() - start)
            taken = 1000 * np.array(seconds)
            print(
                f"{name:<18}{kind:<12}{taken[0]:8.1f}{taken.mean():8.1f}{np.median(taken):8.1f}"
                f"{np.percentile(taken, 90):8.1f}{taken.max():8.1f}"
            )


def table(rtt: FloatArray, keys: int, largest: int, seed: int, processes: int) -> None:
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
        summary = solve_keys(
            template,
            source,
            target,
            processes=processes,
            progress=progress_to(sys.stderr, every=5.0),
        )
        print(
            f"{summary.keys:,} keys in {summary.seconds:.1f} s with {processes} processes: "
            f"{1000 * summary.seconds * processes / summary.keys:.1f} ms of a core per key, "
            f"{target.stat().st_size:,} bytes"
        )


def check(rtt: FloatArray, keys: int, largest: int, seed: int) -> int:
    """Compare enumeration with both bisections; return the number of disagreements.

    HiGHS is left out for ``even`` keys, where N-1C takes it minutes a key; CP-SAT is not.
    """
    rng = np.random.default_rng(seed)
    wrong = 0
    seconds: dict[str, list[float]] = {"enumeration": [], "cp-sat": [], "milp": []}
    models = [(False, Redirect.KEEP), *((True, redirect) for redirect in Redirect)]
    for contingency, redirect in models:
        for number in range(keys):
            fraction = (0.5, 0.8, 0.9, 1.0)[number % 4]
            rules = StoreRules(
                contingency,
                redirect=redirect,
                read_fraction=fraction,
                write_fraction=fraction,
                max_replicas=largest,
            )
            kind = list(KINDS)[(number + 1) % 3]
            problem = store(rtt, rules).with_demand(*KINDS[kind](rng, len(rtt)))
            plans = {}
            for name, taken in seconds.items():
                if name == "milp" and kind == "even":
                    continue
                start = time.perf_counter()
                if name == "enumeration":
                    plans[name] = Enumeration(SetTables.of(problem)).solve(problem)
                else:
                    covering = HighsCovering() if name == "milp" else CpSatCovering()
                    plans[name] = bisect(problem, covering)
                taken.append(time.perf_counter() - start)
            figures = {(plan.value, plan.normal.threshold) for plan in plans.values()}
            model = f"N-1C {redirect.value}" if contingency else "BA"
            same = len(figures) == 1 and len({plan.status for plan in plans.values()}) == 1
            wrong += not same
            verdict = "agree" if same else f"DIFFER {figures}"
            print(
                f"{model:<14} p = {fraction:<4} {kind:<11} T = {plans['enumeration'].value:8.3f} "
                f"{' = '.join(plans)} {verdict}",
                flush=True,
            )
    count = len(models) * keys
    print(
        f"{count - wrong} of {count} keys agree; median seconds per key, tables included: ", end=""
    )
    print(", ".join(f"{name} {np.median(taken):.3f}" for name, taken in seconds.items()))
    return wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one of the modes; return 1 when methods disagree."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quorumstore_speed")
    parser.add_argument("--rtt", help="CSV of RTTs in ms: a header, then site, RTT, RTT, …")
    parser.add_argument("--sites", type=int, default=27)
    parser.add_argument("--largest", type=int, default=5, help="N_max")
    parser.add_argument("--keys", type=int, default=200, help="keys per kind and model")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--table", type=int, metavar="KEYS", help="time a table of so many keys")
    parser.add_argument("--check", type=int, metavar="KEYS", help="compare methods, keys per model")
    options = parser.parse_args(arguments)
    rtt = rtt_matrix(options.rtt, options.sites)
    if options.check:
        return min(1, check(rtt, options.check, options.largest, options.seed))
    if options.table:
        table(rtt, options.table, options.largest, options.seed, options.processes)
        return 0
    speed(rtt, options.keys, options.largest, options.seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
