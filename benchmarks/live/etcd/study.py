"""Real etcd servers under an emulated wide-area network, held against the model.

    python -m benchmarks run live.etcd                    everything: half an hour
    python -m benchmarks run live.etcd --quick            a short form; writes nothing
    python -m benchmarks run live.etcd --only latency     a part; the others keep what they had

Needs Linux with the right to make network namespaces, and Go. Writes
``benchmarks/results/live_etcd.json``; with ``--write-docs``, the page and its picture.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

from benchmarks.harness import machine
from benchmarks.harness.machine import ROOT
from benchmarks.harness.result_files import Row, read_json, save_json
from benchmarks.harness.study import Study
from benchmarks.live.etcd.day import day
from benchmarks.live.etcd.latency import check_network, mean_latencies, percentiles
from benchmarks.live.etcd.losses import load, losses
from benchmarks.live.etcd.page import draw, tables
from benchmarks.live.layouts import azure_part
from benchmarks.live.programs import ETCD, go_program

RESULTS = ROOT / "benchmarks/results/live_etcd.json"
PARTS: dict[str, Callable[[bool], Iterator[Row]]] = {
    "network": lambda quick: iter(check_network(azure_part(), 5 if quick else 20)),
    "latency": mean_latencies,
    "percentiles": percentiles,
    "losses": losses,
    "load": load,
    "day": day,
}
"""Part -> its rows, in a short form or in full."""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--quick", action="store_true", help="small, and writes nothing")


def _run_study(asked: argparse.Namespace) -> int:
    for part in asked.only:
        started = time.monotonic()
        rows = []
        for row in PARTS[part](asked.quick):
            rows.append(row)
            print(f"{part}: {row}")
        seconds = time.monotonic() - started
        print(f"{part}: {seconds:.0f} s", file=sys.stderr)
        if not asked.quick:
            document = read_json(RESULTS)  # another run may have measured another part meanwhile
            document[part] = {
                "rows": rows,
                "seconds": round(seconds),
                "machine": machine.describe(["numpy"]),
                "etcd": _version(),
            }
            save_json(RESULTS, document)
    return 0


def _version() -> str:
    """Return the version of the server, and of the Go that built it."""
    said = subprocess.run(
        [go_program(ETCD), "--version"], capture_output=True, text=True, check=True
    ).stdout
    words = dict(line.split(": ", 1) for line in said.splitlines() if ": " in line)
    return f"etcd {words['etcd Version']}, {words['Go Version']}"


STUDY = Study(
    __doc__,
    _add_arguments,
    _run_study,
    results=("live_etcd.json",),
    page="docs/benchmarks/live.md",
    report=lambda: tables(read_json(RESULTS)),
    draw=lambda: draw(read_json(RESULTS)),
)
