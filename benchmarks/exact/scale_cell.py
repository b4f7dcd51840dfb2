"""Answer a question of the study ``exact.scale`` by the build of the present folder.

The study starts this file by its path, with a question as JSON, for this build and for an older
one, so it asks only what both answer. It prints a row as JSON. Loading the packages does not count.
Limits are on CPU time, because the machine may be busy: then the call is interrupted.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

import placement
from placement import Contingency, Instance, Plan, Problem
from placement.methods.options import Options
from placement.model.operations import STANDARD_OPERATIONS
from placement.proof.certificate_check import check_certificate
from placement.workloads import mix_shares

EARLY = (2.0, 10.0)
"""CPU seconds after which the gap is noted."""


class _Report(Protocol):
    """Report of a search: its best value and its bound."""

    @property
    def incumbent(self) -> float: ...
    @property
    def bound(self) -> float: ...


Ask = Mapping[str, Any]
Answer = dict[str, object]


def instance_of(ask: Ask) -> Instance:
    """Draw points on a sphere: RTTs by distance, and a part of each end or of each pair.

    Parts of the ends keep all triangles ("metric"), parts of the pairs break them ("broken").
    "clusters" is a p-median: whole distances in a plane between points that lie together.
    """
    rng = np.random.default_rng([99, ask["sites"]])
    sites, clients = ask["sites"], ask.get("clients", ask["sites"])
    if ask["network"] == "clusters":
        centres = 1000 * rng.random((30, 2))
        at = centres[rng.integers(30, size=sites)] + rng.normal(0, 30, (sites, 2))
        rtt = np.floor(np.hypot(*(at[:, np.newaxis] - at).transpose(2, 0, 1)))
        between = np.zeros_like(rtt)
    else:
        at = rng.normal(size=(sites, 3))
        homes = at if clients == sites else rng.normal(size=(clients, 3))
        at, homes = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (at, homes))
        both = np.concatenate([homes, at])
        rtt = np.arccos(np.clip(both @ at.T, -1, 1)) * 89.2
        if ask["network"] == "broken":
            part = rng.exponential(4, (sites, sites))
            rtt[clients:] += (part + part.T) / 2
            rtt[:clients] += rng.exponential(4, (clients, sites))
        else:
            access = rng.exponential(2, clients + sites)
            rtt += access[:, np.newaxis] + access[clients:]
        between = np.round(rtt[clients:], 2)
        np.fill_diagonal(between, 0)
        rtt = np.maximum(between if clients == sites else np.round(rtt[:clients], 2), 0.5)
    weight = {
        "even": np.ones(clients),
        "lognormal": np.round(100 * rng.lognormal(0, 3, clients)) + 1,
        "half": np.append(np.full(clients - 1, 1.0), clients - 1.0),
    }[ask["demand"]]
    shares = np.array([1.0, 0, 0, 0, 0]) if ask["mix"] == "reads" else mix_shares(ask["mix"])
    return Instance(
        sites=tuple(f"s{i}" for i in range(sites)),
        clients=tuple(f"c{i}" for i in range(clients)),
        client_rtt=rtt,
        site_rtt=between,
        counts=weight[:, np.newaxis] * shares,
        operations=STANDARD_OPERATIONS,
        name=f"{sites} {ask['network']}",
    )


class Gaps:
    """Gaps of the last reports before the moments of :data:`EARLY`; 1 before there is a bound."""

    def __init__(self) -> None:
        self.began = time.process_time()
        self.gap = dict.fromkeys(EARLY, 1.0)

    def note(self, report: _Report) -> None:
        """Note the gap of a report of the search."""
        gap = 1 - report.bound / report.incumbent if report.incumbent > 0 else 1.0
        spent = time.process_time() - self.began
        self.gap.update((moment, min(1.0, gap)) for moment in EARLY if spent <= moment)

    def after(self, gap: float, spent: float) -> dict[float, float]:
        """Return the gap at each moment, of a search that ended after so long with a gap."""
        return {moment: gap if spent <= moment else early for moment, early in self.gap.items()}


def answer(ask: Ask) -> Answer:
    """Answer a question about a plan; a check and the making of distributions are parts of it."""
    instance = instance_of(ask)
    asked: dict[str, Any] = {}
    extra: Answer = {}
    began = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, ask.get("limit", 0))
    if ask["goal"] == "worst":
        asked["objective"] = Contingency()
    elif ask["goal"] == "weighted":
        asked["objective"] = Contingency(goal="weighted", probability=0.5 / ask["sites"])
    elif ask["goal"] == "p99":
        from placement.tail import Distributions

        before = _peak()
        spread = Distributions.parametric(instance, "lognormal", variation=0.2)
        extra = {"part_s": time.process_time() - began, "part_mb": _peak() - before}
        asked = {"minimise": "p99", "distributions": spread}
    problem = Problem(instance, replicas=ask["replicas"], voters=ask["voters"], **asked)
    gaps, method = Gaps(), ask.get("method", "exact")
    settings = {"certificate": ask.get("check", False)} if method == "exact" else {}
    plan = _solve(problem, method, gaps, settings)
    signal.setitimer(signal.ITIMER_PROF, 0)
    spent = time.process_time() - began
    gap = 0.0 if plan.status == "optimal" else plan.gap
    early = {f"gap_{moment:g}s": known for moment, known in gaps.after(gap, spent).items()}
    if ask.get("check"):
        began = time.process_time()
        extra["note"] = str(check_certificate(plan, work=10**12).bound is not None)
        extra["part_s"] = time.process_time() - began
    return {"cpu_s": spent, "status": str(plan.status), "gap": gap, "value": plan.objective,
            "nodes": plan.stats.get("nodes", 0)} | early | extra  # fmt: skip


def _solve(problem: Problem, method: str, gaps: Gaps, settings: Answer) -> Plan:
    if not method.startswith("peer/"):
        return placement.solve(problem, method, progress=gaps.note, settings=settings)
    from benchmarks.peers import find_method
    from placement.methods.registry import run

    return run(find_method(method), problem, Options())


def fleet(ask: Ask) -> Answer:
    """Plan a drawn fleet on 27 sites."""
    from formulations.fleet import FleetSearch, solve_fleet
    from placement.fleet import FleetPlan, synthetic_fleet
    from placement.overtime.replay.generated_fleets import client_ground

    instance = placement.load("world27")
    ground = client_ground(instance)
    drawn = synthetic_fleet(
        instance, ground.clients, ask["databases"], seed=ask["seed"], owner=ground.owner
    )
    began = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, ask.get("limit", 0))
    plan = solve_fleet(drawn, FleetSearch(gap=ask["gap"]))
    signal.setitimer(signal.ITIMER_PROF, 0)
    spent = time.process_time() - began
    assert isinstance(plan, FleetPlan)
    return {"cpu_s": spent, "status": "feasible", "gap": plan.gap, "value": plan.value}


def shell(ask: Ask) -> Answer:
    """Time ``placement solve`` of a bundled data set as a process, the least of several."""
    del ask
    words = ["-m", "placement", "solve", "world27", "--replicas", "5", "--voters", "3"]
    times = []
    for _ in range(4):  # the first writes bytecode
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *words], check=True, capture_output=True, env=os.environ)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return {"cpu_s": min(times), "status": "optimal", "gap": 0.0}


def _peak() -> float:
    """Return the most memory so far in MB, here since older builds lack `most_memory`."""
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1e3


def main(words: list[str]) -> None:
    """Answer the question and print the row."""
    ask = json.loads(words[0])
    most = int(ask["memory_gb"] * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    tiny = Instance(("a", "b"), ("a", "b"), np.ones((2, 2)), 1 - np.eye(2), np.ones((2, 5)))
    # imports
    first = placement.solve(Problem(tiny, replicas=1, voters=1), settings={"certificate": True})
    check_certificate(first)
    signal.signal(signal.SIGPROF, signal.default_int_handler)  # a limit is Ctrl-C
    before, clock = _peak(), time.perf_counter()
    try:
        row = {"fleet": fleet, "shell": shell}.get(ask["goal"], answer)(ask)
    except MemoryError:
        row = {"status": f"more than {ask['memory_gb']} GB"}
    except KeyboardInterrupt:
        row = {"status": f"no plan in {ask['limit']:g} s"}
    memory = {"memory_mb": _peak() - before, "wall_s": time.perf_counter() - clock}
    print(json.dumps(memory | row))


if __name__ == "__main__":
    main(sys.argv[1:])
