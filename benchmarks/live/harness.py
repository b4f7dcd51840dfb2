"""Real servers under an emulated wide-area network, held against the model: common to all systems.

A system starts its servers as a layout says (voters, learners, leader), and each client measures
operations there, one after the other. The model predicts the same latencies. One layout that was
drawn at random fits the time that the software adds to an operation, a number of ms; the others
are predicted with it.

Clients are nodes of their own beside the sites, so that the RTT within a region is that of the
instance. The document of a system is part -> {"rows", "seconds", "machine", "server"}. A row of the
part `latency` has part ("fit" or "test"), layout, voters, learners, leader, client, operation,
predicted and measured (ms); a row of `losses` has layout, site (of the leader that is killed),
after (who leads then), predicted and measured (ms of a write, mean of the clients).
"""

from __future__ import annotations

import argparse
import itertools
import random
import shutil
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

import placement
from benchmarks.harness import machine
from benchmarks.harness.doc_pages import markdown_table
from benchmarks.harness.machine import ROOT, sentence
from benchmarks.harness.result_files import Row, read_json, save_json
from benchmarks.harness.study import Study
from benchmarks.live.emulated_wan import EmulatedWan
from benchmarks.live.programs import Processes
from placement import Configuration, Instance, Operation, Problem
from placement.databases import Deployment
from placement.evaluation.objective import quorum_size
from placement.evaluation.score import operation_latency

__all__ = [
    "ElectingSystem",
    "Layout",
    "LiveSystem",
    "azure_part",
    "client_node",
    "drawn",
    "live_study",
    "measured_rows",
    "network",
    "planned",
    "predicted",
    "software_share",
]

SITES = (
    "East US", "West US 2", "North Europe", "Germany West Central", "Brazil South",
    "Southeast Asia", "Japan East", "Australia East", "Central India", "UK South",
)  # fmt: skip
CLIENTS = ("Central US", "West Europe", "Brazil South", "Southeast Asia", "Australia East")

Latencies = dict[tuple[str, str], Sequence[float]]
"""(client, operation) -> ms."""


# --- the question ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Layout:
    """Voters and learners of a configuration; the leader changes.

    Attributes
    ----------
    name
        What tables call it.
    voters, learners
        Names of sites.
    leaders
        Voters that are tried as leaders, best first by the model where it was planned.
    """

    name: str
    voters: tuple[str, ...]
    learners: tuple[str, ...]
    leaders: tuple[str, ...]

    @property
    def replicas(self) -> tuple[str, ...]:
        """Voters and learners."""
        return self.voters + self.learners

    def deployment(self, leader: str) -> Deployment:
        """Return the layout as the target of a runbook, under one leader."""
        return Deployment.of(
            "live",
            dict.fromkeys(self.voters, 1),
            dict.fromkeys(self.learners, 1),
            leaders=(leader,),
        )


def azure_part(operations: Sequence[Operation]) -> Instance:
    """Return measured RTTs of ten Azure regions, one operation of each kind for five clients.

    The RTT between two sites is the mean of both directions.
    """
    world = placement.load("azure")
    rows = world.site_indices(SITES)
    columns = np.array([world.client_index(name) for name in CLIENTS])
    between = world.site_rtt[np.ix_(rows, rows)]
    return Instance(
        sites=SITES,
        clients=CLIENTS,
        client_rtt=world.client_rtt[np.ix_(columns, rows)],
        site_rtt=(between + between.T) / 2,
        counts=np.ones((len(CLIENTS), len(operations))),
        operations=tuple(operations),
        name=f"{len(SITES)} sites of {world.name}",
        provenance=world.provenance,
    )


def planned(instance: Instance, replicas: int, voters: int) -> Layout:
    """Return the proven optimum, with every voter as a leader, the plan's first."""
    plan = placement.solve(Problem(instance, replicas=replicas, voters=voters), "exact")
    assert str(plan.status) == "optimal"
    first = (plan.leader,) if plan.leader else ()
    return Layout(
        f"planned {voters}/{replicas}",
        tuple(plan.voters),
        tuple(name for name in plan.replicas if name not in plan.voters),
        (*first, *sorted(set(plan.voters) - {plan.leader})),
    )


def drawn(instance: Instance, replicas: int, voters: int, seed: int) -> Layout:
    """Return a layout without any thought, with every voter as a leader."""
    names = tuple(random.Random(seed).sample(instance.sites, replicas))
    return Layout(f"drawn {voters}/{replicas}", names[:voters], names[voters:], names[:voters])


def client_node(client: str) -> str:
    """Return the name of a client's node in the network."""
    return f"client {client}"


def network(instance: Instance) -> EmulatedWan:
    """Return the network of an instance: its sites, then its clients."""
    sites, clients = len(instance.sites), len(instance.clients)
    rtt = np.ones((sites + clients, sites + clients))  # no client talks to another
    rtt[:sites, :sites] = instance.site_rtt
    rtt[sites:, :sites] = instance.client_rtt
    rtt[:sites, sites:] = instance.client_rtt.T
    return EmulatedWan([*instance.sites, *map(client_node, instance.clients)], rtt)


def predicted(
    instance: Instance, leader: str, layout: Layout, lost: str = ""
) -> dict[tuple[str, str], float]:
    """Return the mean latency in ms by (client, operation), as the evaluator gives it.

    After the loss of a site the quorum has as many votes as before. Without a leader, no operation
    may need one.
    """
    problem = Problem(instance, replicas=len(layout.replicas), voters=len(layout.voters))
    place = {name: i for i, name in enumerate(instance.sites)}
    voters, replicas = (
        sorted(place[name] for name in names) for names in (layout.voters, layout.replicas)
    )
    whole = Configuration.of(voters[0], voters, replicas)  # the quorum depends on no leader
    latency = operation_latency(
        problem.demand,
        place.get(leader, voters[0]),
        [v for v in voters if v != place.get(lost)],
        [r for r in replicas if r != place.get(lost)],
        quorum_size(problem, whole),
    )
    return {
        (client, operation.name): float(latency[0, c, o])
        for c, client in enumerate(instance.clients)
        for o, operation in enumerate(instance.operations)
    }


# --- the measurement ------------------------------------------------------------------------------


class LiveSystem(ABC):
    """Servers of a system on the network of an instance, as a context; one layout at a time.

    Attributes
    ----------
    title, results, write
        What tables of the page call the system (empty: nothing), the file of its results, and
        the operation that ranks leaders.
    operations
        What each client issues.
    words
        Name of an operation -> words of the tables.
    """

    title: ClassVar[str]
    results: ClassVar[str]
    write: ClassVar[str]
    operations: ClassVar[tuple[Operation, ...]]
    words: ClassVar[Mapping[str, str]]

    def __init__(self) -> None:
        self.instance = azure_part(self.operations)
        self.wan = network(self.instance)
        self.processes = Processes()
        self.folder = Path()

    def __enter__(self) -> Self:
        self.wan.__enter__()
        self.folder = Path(tempfile.mkdtemp(prefix="live-"))
        self.folder.chmod(0o755)  # a server may run as another account
        return self

    def __exit__(self, *_: object) -> None:
        self.processes.stop_all()
        self.wan.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    @classmethod
    @abstractmethod
    def version(cls) -> str:
        """Return the version of the server; UnsupportedError where it cannot be had."""

    @abstractmethod
    def start(self, layout: Layout, leader: str) -> None:
        """Stop the servers that run, and start those of a layout under a leader."""

    @abstractmethod
    def measure(self, sites: Sequence[str], leader: str, count: int) -> Latencies:
        """Return latencies of `count` operations of each kind; all clients measure at once.

        Reads of the closest server go to the closest of `sites`.
        """

    def layouts(self, quick: bool) -> list[tuple[str, Layout]]:
        """Return the layouts that are measured, each with its part, "fit" or "test"."""
        here = self.instance
        found = [("fit", drawn(here, 4, 3, seed=3)), ("test", planned(here, 5, 3))]
        if not quick:
            found.append(("test", planned(here, 7, 5)))
            found.append(("test", drawn(here, 6, 5, seed=2)))
        return found

    def closest(self, client: str, sites: Iterable[str]) -> str:
        """Return the site that is closest to a client."""
        row = self.instance.client_rtt[self.instance.client_index(client)]
        return min(sites, key=lambda site: row[self.instance.sites.index(site)])


class ElectingSystem(LiveSystem):
    """Servers that elect a leader after the loss of one."""

    @abstractmethod
    def kill(self, site: str) -> str:
        """Kill the leader, and return the site that leads once writes succeed again."""


def measured_rows(bench: LiveSystem, part: str, quick: bool) -> Iterator[Row]:
    """Yield the rows of a part of a system, see the module; `quick`: a short form."""
    with bench:
        if part == "latency":
            yield from _latencies(bench, quick)
        elif isinstance(bench, ElectingSystem):
            yield from _losses(bench, quick)


def _latencies(bench: LiveSystem, quick: bool) -> Iterator[Row]:
    for part, layout in bench.layouts(quick):
        for leader in layout.leaders[: (2 if part == "test" else 1) if quick else None]:
            bench.start(layout, leader)
            model = predicted(bench.instance, leader, layout)
            found = bench.measure(layout.replicas, leader, 8 if quick else 20)
            for (client, operation), values in found.items():
                yield {
                    "part": part,
                    "layout": layout.name,
                    "voters": list(layout.voters),
                    "learners": list(layout.learners),
                    "leader": leader,
                    "client": client,
                    "operation": operation,
                    "predicted": round(model[client, operation], 3),
                    "measured": round(float(np.mean(values)), 3),
                    "n": len(values),
                }


def _losses(bench: ElectingSystem, quick: bool) -> Iterator[Row]:
    tried = [layout for part, layout in bench.layouts(quick) if part == "test"]
    for layout in tried:
        killed = layout.leaders[0]
        bench.start(layout, killed)
        after = bench.kill(killed)
        model = predicted(bench.instance, after, layout, lost=killed)
        rest = [site for site in layout.replicas if site != killed]
        found = bench.measure(rest, after, 8 if quick else 20)
        asked = [(client, bench.write) for client in bench.instance.clients]
        yield {
            "layout": layout.name,
            "site": killed,
            "after": after,
            "predicted": round(float(np.mean([model[one] for one in asked])), 2),
            "measured": round(float(np.mean([np.mean(found[one]) for one in asked])), 2),
        }


# --- tables ---------------------------------------------------------------------------------------


def software_share(rows: Iterable[Row], operations: Iterable[str]) -> dict[str, float]:
    """Return ms by operation that the software adds: the median difference on the fitted runs."""
    fitted = [row for row in rows if row["part"] == "fit"]
    return {
        name: float(
            np.median([r["measured"] - r["predicted"] for r in fitted if r["operation"] == name])
        )
        for name in operations
    }


def _summary(rows: Sequence[Row], operations: Mapping[str, str]) -> str:
    """Return a line per operation: errors of the predictions on the runs that were not fitted."""
    share = software_share(rows, operations)
    lines = []
    for name, words in operations.items():
        mine = [row for row in rows if row["part"] == "test" and row["operation"] == name]
        error = np.array([r["measured"] - r["predicted"] - share[name] for r in mine])
        part = abs(error) / np.array([r["measured"] for r in mine])
        lines.append((
            words, f"{share[name]:.1f}", len(mine), f"{np.mean(abs(error)):.1f}",
            f"{np.max(abs(error)):.1f}", f"{100 * np.mean(part):.1f} %",
            f"{100 * np.quantile(part, 0.9):.1f} %", f"{100 * np.max(part):.1f} %",
            f"{int((part <= 0.05).sum())} of {len(mine)}",
        ))  # fmt: skip
    heads = ("operation", "software, ms", "cases", "mean error, ms", "worst, ms", "mean error",
             "90th percentile", "worst", "within 5 %")  # fmt: skip
    return markdown_table(heads, lines)


def _layouts(rows: Sequence[Row], operation: str) -> str:
    """Return a line per layout: its best leader, the worst error, and the ranks of its leaders."""
    share = software_share(rows, [operation])[operation]
    tried = [row for row in rows if row["part"] == "test" and row["operation"] == operation]
    lines = []
    for name, group in itertools.groupby(tried, key=lambda row: row["layout"]):
        layout = list(group)
        means = {
            leader: (
                float(np.mean([r["predicted"] for r in layout if r["leader"] == leader])) + share,
                float(np.mean([r["measured"] for r in layout if r["leader"] == leader])),
            )
            for leader in dict.fromkeys(row["leader"] for row in layout)
        }
        ranks = [sorted(means, key=lambda leader: means[leader][i]) for i in (0, 1)]
        model, real = means[ranks[0][0]]
        worst = max(abs(real / model - 1) for model, real in means.values())
        same = sum(a == b for a, b in zip(*ranks, strict=True))
        lines.append((name, ranks[0][0], f"{model:.1f}", f"{real:.1f}", f"{100 * worst:.1f} %",
                      f"{same} of {len(means)}"))  # fmt: skip
    heads = ("layout", "best leader", "predicted, ms", "measured, ms", "worst error of a leader",
             "ranks as predicted")  # fmt: skip
    return markdown_table(heads, lines)


def _tables(system: type[LiveSystem], document: Mapping[str, Any]) -> dict[str, str]:
    """Return the tables of the page by name, for what was measured."""
    rows = document["latency"]["rows"]
    measured = {row["operation"] for row in rows}
    kept = {name: words for name, words in system.words.items() if name in measured}
    before = f"{system.title} " if system.title else ""
    found = {f"{before}summary": _summary(rows, kept)}
    if any(row["leader"] for row in rows):
        found[f"{before}layouts"] = _layouts(rows, system.write)
    return found


def live_study(description: str | None, system: type[LiveSystem]) -> Study:
    """Return the study of a system, with options ``--only`` and ``--quick``.

    Parameters
    ----------
    description
        The docstring of its module.
    system
        Its servers.
    """
    path = ROOT / "benchmarks/results" / system.results
    parts = ["latency", *(["losses"] if issubclass(system, ElectingSystem) else [])]

    def add_arguments(parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--only", nargs="+", choices=parts, default=parts, help="parts that are measured"
        )
        parser.add_argument("--quick", action="store_true", help="small, and writes nothing")

    def run(asked: argparse.Namespace) -> int:
        for part in asked.only:
            started = time.monotonic()
            rows = []
            for row in measured_rows(system(), part, asked.quick):
                rows.append(row)
                print(f"{part}: {row}")
            seconds = time.monotonic() - started
            print(f"{part}: {seconds:.0f} s", file=sys.stderr)
            if not asked.quick:
                document = read_json(path)  # the parts that are not measured stay
                about = machine.describe(["numpy"])
                document[part] = {"rows": rows, "seconds": round(seconds), "machine": about,
                                  "server": system.version()}  # fmt: skip
                print(sentence(about))
                save_json(path, document)
        return 0

    return Study(
        description,
        add_arguments,
        run,
        results=(system.results,),
        page="docs/benchmarks/live.md",
        report=lambda: _tables(system, read_json(path)),
    )
