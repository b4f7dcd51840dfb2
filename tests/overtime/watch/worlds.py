"""A small world with demand that follows the sun, and its intervals as files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from placement import Instance, Problem
from placement.overtime.decayed_counts import Decay
from placement.overtime.moves import Hysteresis, MovePrices
from placement.overtime.watch.arrivals import CountColumns, source_of
from placement.overtime.watch.recommend import WatchSettings, advise, initial_state
from placement.overtime.watch.state_store import Store
from placement.overtime.watch.watch_loop import Watch

Counts = npt.NDArray[np.float64]


def world() -> Instance:
    """Six sites on a line, a client at each."""
    at = np.array([0.0, 12.0, 31.0, 58.0, 77.0, 90.0])
    between = np.abs(np.subtract.outer(at, at))
    return Instance(
        sites=tuple("abcdef"),
        clients=tuple(f"client {c}" for c in "abcdef"),
        client_rtt=between + 1.0,
        site_rtt=between,
        counts=np.ones((6, 5)),
        domains={"country": ("x", "x", "y", "y", "z", "z")},
    )


def demand(intervals: int, seed: int = 0) -> Counts:
    """Counts whose weight wanders from one end to the other and back, twice."""
    rng = np.random.default_rng(seed)
    place = 2.5 + 2.5 * np.sin(np.linspace(0, 4 * np.pi, intervals))
    weight = np.exp(-((np.arange(6) - place[:, None]) ** 2))
    mix = np.array([60, 25, 12, 30, 3.0])
    return rng.poisson(20 * weight[:, :, None] * mix).astype(float)


def csv_text(instance: Instance, labels: Sequence[object], counts: Counts) -> str:
    """Some intervals in the long form, zeros left out."""
    lines = ["interval,client,operation,count"]
    for label, table in zip(labels, counts, strict=True):
        for c, o in zip(*np.nonzero(table), strict=True):
            name, kind = instance.clients[c], instance.operations[o].name
            lines.append(f"{label},{name},{kind},{float(table[c, o])!r}")
    return "\n".join(lines) + "\n"


def drop(folder: Path, name: str, text: str) -> None:
    """Put a file into a folder as the documentation asks: under another name, then renamed."""
    folder.mkdir(exist_ok=True)
    (folder / f".{name}").write_text(text)
    (folder / f".{name}").rename(folder / name)


def settings(tier: int = 3, **changes: object) -> WatchSettings:
    instance = world()
    asked: dict[str, object] = {"replicas": 4, "voters": 3, "survive": "country"}
    if tier < 3:
        asked["replicas"] = ["a", "c", "d", "f"]
    if tier < 2:
        asked["voters"] = ["a", "c", "f"]
    arguments: dict[str, object] = {
        "problem": Problem(instance, **asked),  # type: ignore[arg-type]  # one table of cases
        "decay": Decay(1.3),
        "rule": Hysteresis(4.0, confirm=2),
        "prices": MovePrices(leader=6.0, voter=1.0, add=4.0, remove=0.5),
    }
    return WatchSettings(**{**arguments, **changes})  # type: ignore[arg-type]  # as above


class Run:
    """A watch in this process, with all it shows and complains about."""

    def __init__(self, where: WatchSettings, source: Path, state: Path, **options: object) -> None:
        operations = tuple(operation.name for operation in where.instance.operations)
        columns = CountColumns(where.instance.clients, operations)
        options.setdefault("settle", 0.0)
        found = source_of(source, columns, **options)  # type: ignore[arg-type]  # passed on
        self.store = Store.open(state, where)
        self.shown: list[dict[str, object]] = []
        self.reports: list[tuple[str, str, str, str]] = []
        self.watch = Watch(where, found, self.store, self._show, self._complain)

    def _show(self, document: object) -> None:
        # as a reader of the output would have it
        self.shown.append(json.loads(json.dumps(document)))

    def _complain(self, report: object) -> None:
        self.reports.append(tuple(report))  # type: ignore[arg-type]  # a Report

    def look(self) -> Run:
        """Resume and look once."""
        self.watch.resume()
        self.watch.poll()
        return self

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.store.close()


def kinds(run: Run) -> list[tuple[str, str, str]]:
    """Kind, file and interval of what was reported."""
    return [report[:3] for report in run.reports]


def reference(tier: int, counts: Counts, **more: object) -> list[dict[str, object]]:
    """The recommendations, without any file or store."""
    asked = settings(tier, **more)
    state, found = initial_state(asked), []
    for i, table in enumerate(counts):
        state, advice = advise(asked, state, str(i), table)
        found.append(json.loads(json.dumps(advice.document)))
    return found
