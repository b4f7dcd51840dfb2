"""Predicted against measured, from the rows that a run has written: numbers and tables.

What is predicted comes from ``placement/model/systems.csv`` by the evaluator of the package. Its
constants were fitted on one layout (`fitted_constants`), which no table of errors contains.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.commit_paths.layouts import CLIENTS, VOTERS, Layout, layouts
from benchmarks.harness.doc_pages import markdown_table
from benchmarks.harness.machine import ROOT
from benchmarks.harness.result_files import Row, read_json, read_rows, save_rows
from placement import Instance, Operation, Problem
from placement.evaluation.score import operation_latency
from placement.model.protocols import SystemRow, system_rows

GUESSES = Path(__file__).with_name("guesses.csv")
TABLE = ROOT / "placement/model/systems.csv"
_TRIPS = {"alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ"}


def read_results(folder: Path) -> dict[str, Any]:
    """Return what was measured: system -> version, package, servers, and rows with ms."""
    found = {name: {**entry, "rows": []}
             for name, entry in read_json(folder / "commit_paths.json").items()}  # fmt: skip
    for row in read_rows(folder / "commit_paths.csv"):
        figures = {name: float(row[name]) for name in ("measured", "high")}
        if row["system"] in found:
            found[row["system"]]["rows"].append({**row, **figures, "client": int(row["client"])})
    return found


def predicted(rows: Sequence[SystemRow], layout: Layout) -> dict[tuple[int, str], float]:
    """Return ms by (client, operation) under a layout whose voters have disks that are alike."""
    (disk,) = set(layout.disks[:VOTERS])
    paths = [row.under(disk, 0.0, VOTERS) for row in rows]
    sites = tuple(f"s{i}" for i in range(len(layout.disks)))
    operations = [
        Operation(row.operation, near=a, relay=b, direct=c, kind="read" if "read" in row.kind else
                  "write", waits=path.waits, constant=path.constant)
        for row, path in zip(rows, paths, strict=True) for a, b, c in [path.trips]
    ]  # fmt: skip
    instance = Instance(
        sites=sites, clients=CLIENTS, client_rtt=layout.clients, site_rtt=layout.between,
        counts=np.ones((len(CLIENTS), len(rows))), operations=tuple(operations), name="layout",
    )  # fmt: skip
    problem = Problem(instance, replicas=len(sites), voters=VOTERS)
    found = operation_latency(
        problem.demand, 0, list(range(VOTERS)), list(range(len(sites))), VOTERS // 2 + 1
    )
    return {
        (client, row.operation): float(found[0, client, o])
        for client in range(len(CLIENTS)) for o, row in enumerate(rows)
    }  # fmt: skip


def _laid(system: str, entry: Mapping[str, Any], part: str) -> list[tuple[SystemRow, Row, float]]:
    """Return (row of the model, measured row, predicted ms) of a part with disks alike."""
    rows = {row.operation: row for row in system_rows() if row.system == system}
    found = []
    for layout in layouts(entry["servers"]):
        if layout.part == part and len(set(layout.disks)) == 1:
            model = predicted(list(rows.values()), layout)
            found += [
                (rows[one["operation"]], one, model[one["client"], one["operation"]])
                for one in entry["rows"]
                if one["part"] == part and one["layout"] == layout.name
                and one["operation"] in rows
            ]  # fmt: skip
    return found


def fitted_constants(document: Mapping[str, Any]) -> dict[tuple[str, str], float]:
    """Return the ms of the software by (system, operation): medians of the fitted layout."""
    found = {}
    for system, entry in document.items():
        fitted = _laid(system, entry, "fit")
        for row in dict.fromkeys(one for one, _, _ in fitted):
            rest = [m["measured"] - ms + row.path.constant for one, m, ms in fitted if one is row]
            found[system, row.operation] = max(0.0, float(np.median(rest)))
        for row in (one for one, _, _ in fitted if _drawn(one)):
            found[system, row.operation] = min(ms for (of, _), ms in found.items() if of == system)
    return found


def _drawn(row: SystemRow) -> bool:
    """Return whether all depends on whom servers draw: a mean of few draws fits no constant."""
    return bool(row.path.waits) and all(wait.startswith("0.") for wait in row.path.waits)


def fit(document: Mapping[str, Any]) -> None:
    """Write versions and fitted constants into the table of systems."""
    constants = fitted_constants(document)
    rows = read_rows(TABLE)
    for row in rows:
        key = row["system"], row["operation"]
        if key in constants:
            row |= {"constant": f"{constants[key]:.1f}", "version": document[key[0]]["version"]}
    save_rows(TABLE, rows)


def cases(document: Mapping[str, Any]) -> list[Row]:
    """Return every case that was not fitted: system, operation, layout, predicted, measured."""
    return [
        {**{key: m[key] for key in ("operation", "layout", "client", "measured")},
         "system": system, "predicted": round(ms, 2),
         "good": abs(m["measured"] - ms) <= max(2.0, 0.05 * m["measured"])}
        for system, entry in document.items() for _, m, ms in _laid(system, entry, "test")
    ]  # fmt: skip


def discordant(rows: Iterable[Row]) -> tuple[int, int]:
    """Return how many pairs of layouts differ by more than 3 %, and how many are in other order."""
    means: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        if "disks" not in row["layout"]:
            means.setdefault(row["layout"], []).append((row["predicted"], row["measured"]))
    pairs = wrong = 0
    for (a, x), (b, y) in itertools.combinations(
        (np.mean(values, axis=0) for values in means.values()), 2
    ):
        if abs(x - y) > 0.03 * min(x, y):
            pairs += 1
            wrong += (a - b) * (x - y) <= 0
    return pairs, wrong


def _words(path: Path) -> dict[tuple[str, str], str]:
    """Return the path of each operation of a table in words: trips, waits, flushes."""
    found = {}
    for row in read_rows(path):
        if row["alpha"]:
            trips = [greek for name, greek in _TRIPS.items() if row[name] == "1"]
            waits = row["waits"].replace("{majority}", "majority")
            waits = waits.replace("majority", str(VOTERS // 2 + 1))
            trips += [wait.strip() for wait in waits.split(";") if wait]
            disk = [f"{flushes} {when}" for when in ("before", "beside")
                    if (flushes := row[f"disk_{when}"]) != "0"]  # fmt: skip
            words = f"{' + '.join(trips)} ({', '.join(disk) or 'none'})"
            found[row["system"], row["operation"]] = words
    return found


def report(document: Mapping[str, Any]) -> dict[str, str]:
    """Return the tables of the page by name."""
    guessed, known = _words(GUESSES), _words(TABLE)
    rows = cases(document)
    terms, errors, rest = [], [], []
    every = [one.name for one in layouts(VOTERS) if one.part == "probe"]
    probes = [every[0], *every[-2:]]
    for system, entry in document.items():
        mine = [row for row in rows if row["system"] == system]
        for row in (one for one in system_rows() if one.system == system):
            found = {(m["layout"], m["client"]): m["measured"] for m in entry["rows"]
                     if m["part"] == "probe" and m["operation"] == row.operation}  # fmt: skip
            path = known[system, row.operation]
            guess = guessed.get((system, row.operation), "not guessed")
            terms.append((
                f"{system} {entry['version'].partition('-')[0]}", row.operation, guess,
                "as guessed" if path == guess else path,
                *(f"{found[name, 1]:.0f}" if (name, 1) in found else "" for name in probes),
            ))  # fmt: skip
            tests = [m for m in mine if m["operation"] == row.operation]
            if tests:
                off = np.array([m["measured"] - m["predicted"] for m in tests])
                errors.append((
                    system, row.operation, f"{row.path.constant:.1f}", f"{np.mean(abs(off)):.1f}",
                    f"{off[np.argmax(abs(off))]:+.1f}", f"{sum(m['good'] for m in tests)}",
                ))  # fmt: skip
        stale = [m for m in entry["rows"] if m["part"] == "staleness"]
        lost = [m for m in entry["rows"] if m["part"] == "loss"]
        rest.append((
            system,
            ", ".join(f"{m['measured']:.0f} (worst {m['high']:.0f})" for m in stale) or "–",
            ", ".join(f"{m['measured'] / 1000:.1f} s" for m in lost) or "–",
        ))  # fmt: skip
    good = sum(row["good"] for row in rows)
    share = f"{good} ({100 * good / max(1, len(rows)):.0f} %)"
    errors.append(("all", "", "", "", "", share))
    return {
        "terms": markdown_table(
            ("system", "operation", "guess (flushes)", "measured", *probes), terms),
        "predictions": markdown_table(
            ("system", "operation", "software, ms", "mean error, ms", "worst, ms",
             "within 5 % or 2 ms"), errors),
        "others": markdown_table(
            ("system", "staleness at each other server, ms", "writes again after a lost leader"),
            rest),
    }  # fmt: skip
