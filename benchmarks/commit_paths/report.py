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

from benchmarks.commit_paths.systems import CLIENTS, VOTERS, Layout, layouts
from benchmarks.harness.doc_pages import grouped, markdown_table, mean, pick
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


def compared(document: Mapping[str, Any], part: str) -> list[Row]:
    """Return every case of a part with disks alike: the measured row, the model's, and its ms."""
    found = []
    for system, entry in document.items():
        rows = {row.operation: row for row in system_rows() if row.system == system}
        for layout in layouts(entry["servers"]):
            if layout.part == part and len(set(layout.disks)) == 1:
                model = predicted(list(rows.values()), layout)
                mine = pick(entry["rows"], part=part, layout=layout.name)
                for row in (row for row in mine if row["operation"] in rows):
                    ms = model[row["client"], row["operation"]]
                    good = abs(row["measured"] - ms) <= max(2.0, 0.05 * row["measured"])
                    more = {"model": rows[row["operation"]], "predicted": ms, "good": good}
                    found.append({**row, **more})
    return found


def fitted_constants(document: Mapping[str, Any]) -> dict[tuple[str, str], float]:
    """Return the ms of the software by (system, operation): medians of the fitted layout.

    Where all depends on whom servers draw, a mean of few draws fits none: the least of the system.
    """
    found, drawn = {}, []
    for rows in grouped(compared(document, "fit"), "system", "operation"):
        key, path = (rows[0]["system"], rows[0]["operation"]), rows[0]["model"].path
        rest = [row["measured"] - row["predicted"] + path.constant for row in rows]
        found[key] = max(0.0, float(np.median(rest)))
        if path.waits and all(wait.startswith("0.") for wait in path.waits):
            drawn.append(key)
    for key in drawn:
        found[key] = min(ms for (system, _), ms in found.items() if system == key[0])
    return found


def fit(document: Mapping[str, Any]) -> None:
    """Write versions and fitted constants into the table of systems."""
    constants = fitted_constants(document)
    rows = read_rows(TABLE)
    for row in rows:
        key = row["system"], row["operation"]
        if key in constants:
            row |= {"constant": f"{constants[key]:.1f}", "version": document[key[0]]["version"]}
    save_rows(TABLE, rows)


def discordant(rows: Iterable[Row]) -> tuple[int, int]:
    """Return how many pairs of layouts differ by more than 3 %, and how many are in other order."""
    plain = grouped((row for row in rows if "disks" not in row["layout"]), "layout")
    means = [(mean(mine, "predicted"), mean(mine, "measured")) for mine in plain]
    pairs = wrong = 0
    for (a, x), (b, y) in itertools.combinations(means, 2):
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
    rows = compared(document, "test")
    terms, errors, rest = [], [], []
    every = [one.name for one in layouts(VOTERS) if one.part == "probe"]
    probes = [every[0], *every[-2:]]
    for row in (row for name in document for row in system_rows() if row.system == name):
        key, entry = (row.system, row.operation), document[row.system]
        found = {m["layout"]: f"{m['measured']:.0f}" for m in
                 pick(entry["rows"], part="probe", operation=row.operation, client=1)}  # fmt: skip
        guess = guessed.get(key, "not guessed")
        path = "as guessed" if known[key] == guess else known[key]
        version = f"{row.system} {entry['version'].partition('-')[0]}"
        terms.append((version, row.operation, guess, path, *(found.get(p, "") for p in probes)))
        tests = pick(rows, system=row.system, operation=row.operation)
        if tests:
            off = np.array([m["measured"] - m["predicted"] for m in tests])
            errors.append((
                *key, f"{row.path.constant:.1f}", f"{np.mean(abs(off)):.1f}",
                f"{off[np.argmax(abs(off))]:+.1f}", f"{sum(m['good'] for m in tests)}",
            ))  # fmt: skip
    for name, entry in document.items():
        stale, lost = (pick(entry["rows"], part=part) for part in ("staleness", "loss"))
        rest.append((
            name,
            ", ".join(f"{m['measured']:.0f} (worst {m['high']:.0f})" for m in stale) or "–",
            ", ".join(f"{m['measured'] / 1000:.1f} s" for m in lost) or "–",
        ))  # fmt: skip
    good = sum(row["good"] for row in rows)
    errors.append(("all", "", "", "", "", f"{good} ({100 * good / max(1, len(rows)):.0f} %)"))
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
