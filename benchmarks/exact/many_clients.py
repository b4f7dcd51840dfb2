"""Time and memory of method ``exact`` on problems of many clients and few sites.

    python -m benchmarks run exact.many_clients                        three minutes of CPU time
    python -m benchmarks run exact.many_clients --clients 20000 --threads 1

Thirty-two sites and 20,000, 100,000 and 500,000 clients, strewn around the bundled cities: sites
evenly, clients by people online. An RTT is 2 ms and 15 ms per 1,000 km of great circle, times a
lognormal factor of the pair (standard deviation 0.15); demand follows a Pareto law of shape 2. The
mix ``social``, |R| and |V| 5/3 and 9/5. A question runs in a separate process, from the problem
to the proven plan, the certificate left out (``--certificate`` keeps it).

Times are CPU times over all threads, and wall times. Memory is the peak beside what the process
held before, the instance included, by cell: by pair of a client and a site, of which the instance
itself takes eight bytes. It is NaN where the system does not tell (all but Linux).

Prints a table and writes results/exact_many_clients.csv, one row per question.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import sys
import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from benchmarks.harness.machine import describe, sentence
from benchmarks.harness.memory import most_memory, watch_memory
from benchmarks.harness.result_files import add_results, save_csv
from benchmarks.harness.study import Study
from formulations.exact.kernel import compiled_available
from placement import Instance, Problem, datasets, solve
from placement.datasets.distance_rtt import great_circle_km
from placement.model.operations import STANDARD_OPERATIONS
from placement.support.checks import FloatArray
from placement.workloads import USER_EXPONENT, mix_shares

SITES = 32
CLIENTS = (20_000, 100_000, 500_000)
SIZES = ((5, 3), (9, 5))
HEADS = (
    "clients",
    "sites",
    "replicas",
    "voters",
    "threads",
    "certificate",
    "status",
    "cpu s",
    "wall s",
    "bounds",
    "MB",
    "bytes per cell",
)


def crowd(clients: int, sites: int = SITES, *, mix: str = "social", seed: int = 1) -> Instance:
    """Return many clients and few sites; see the module."""
    rng = np.random.default_rng([seed, sites, clients])
    cities = datasets.cities()
    places = np.array([(city.lat, city.lon) for city in cities])
    people = np.array([city.users for city in cities]) ** USER_EXPONENT

    def strewn(count: int, share: FloatArray | None) -> FloatArray:
        near = places[rng.choice(len(places), count, p=share)] + rng.normal(0, 2, (count, 2))
        near[:, 0] = near[:, 0].clip(-80, 80)
        near[:, 1] = (near[:, 1] + 180) % 360 - 180
        return near

    def rtts(origin: FloatArray, target: FloatArray) -> FloatArray:
        line = 2.0 + 0.015 * great_circle_km(origin, target)
        return np.asarray(line * np.exp(rng.normal(0, 0.15, line.shape)))

    homes, sited = strewn(clients, people / people.sum()), strewn(sites, None)
    between = rtts(sited, sited)
    between = np.maximum(between, between.T)
    np.fill_diagonal(between, 0.0)
    rate = 50 * (rng.pareto(2.0, clients) + 0.5)
    return Instance(
        sites=tuple(f"s{i}" for i in range(sites)),
        clients=tuple(f"c{i}" for i in range(clients)),
        client_rtt=rtts(homes, sited),
        site_rtt=between,
        counts=np.floor(rate[:, np.newaxis] * mix_shares(mix)),
        operations=STANDARD_OPERATIONS,
        name=f"{sites} x {clients}",
    )


def answer(
    clients: int, replicas: int, voters: int, threads: int, certificate: bool
) -> tuple[object, ...]:
    """Return the row of one question."""
    solve(Problem(crowd(100), replicas=3, voters=3))  # imports
    problem = Problem(crowd(clients), replicas=replicas, voters=voters)
    told = watch_memory()
    before = most_memory() if told else math.nan
    busy, began = time.process_time(), time.perf_counter()
    plan = solve(problem, threads=threads, settings={"certificate": certificate})
    seconds = time.process_time() - busy, time.perf_counter() - began
    memory = most_memory() - before if told else math.nan
    per_cell = memory * 1e6 / (clients * SITES)
    numbers = (f"{seconds[0]:.2f}", f"{seconds[1]:.2f}", plan.stats["bounds"])
    return (
        *(clients, SITES, replicas, voters, threads, certificate, str(plan.status)),
        *numbers,
        f"{memory:.0f}",
        f"{per_cell:.1f}",
    )


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--clients", nargs="+", type=int, default=list(CLIENTS))
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--certificate", action="store_true", help="keep the certificate")
    add_results(parser)


def _run_study(asked: argparse.Namespace) -> int:
    """Run the benchmark."""
    if not compiled_available():
        print("error: there is no compiled kernel here", file=sys.stderr)
        return 1
    rows: list[tuple[object, ...]] = []
    print(*HEADS, sep="  ")
    for clients in asked.clients:
        for replicas, voters in SIZES:
            for threads in asked.threads:
                question = (clients, replicas, voters, threads, asked.certificate)
                fresh = multiprocessing.get_context("spawn")
                with ProcessPoolExecutor(1, mp_context=fresh) as process:
                    rows.append(process.submit(answer, *question).result())
                print(*rows[-1], sep="  ", flush=True)
    print(sentence(describe(("numpy",))))
    save_csv(asked.results / "exact_many_clients.csv", HEADS, rows)
    return 0


STUDY = Study(__doc__, _add_arguments, _run_study, results=("exact_many_clients.csv",))
