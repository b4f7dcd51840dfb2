"""Real etcd servers under an emulated wide-area network, held against the model.

    python -m benchmarks run live.etcd                    everything: half an hour
    python -m benchmarks run live.etcd --quick            a short form; writes nothing
    python -m benchmarks run live.etcd --only latency     a part; the others keep what they had

Needs Linux with the right to make network namespaces, and Go. Writes
``benchmarks/results/live_etcd.json``; with ``--write-docs``, the page and its picture.
"""

from __future__ import annotations

import subprocess

from benchmarks.live.etcd.day import day
from benchmarks.live.etcd.latency import check_network, mean_latencies, percentiles
from benchmarks.live.etcd.losses import load, losses
from benchmarks.live.etcd.page import draw, tables
from benchmarks.live.layouts import azure_part
from benchmarks.live.programs import ETCD, go_program
from benchmarks.live.study_parts import Parts, live_study

PARTS: Parts = {
    "network": lambda quick: iter(check_network(azure_part(), 5 if quick else 20)),
    "latency": mean_latencies,
    "percentiles": percentiles,
    "losses": losses,
    "load": load,
    "day": day,
}


def _version() -> str:
    """Return the version of the server, and of the Go that built it."""
    said = subprocess.run(
        [go_program(ETCD), "--version"], capture_output=True, text=True, check=True
    ).stdout
    words = dict(line.split(": ", 1) for line in said.splitlines() if ": " in line)
    return f"etcd {words['etcd Version']}, {words['Go Version']}"


STUDY = live_study(__doc__, "live_etcd.json", PARTS, _version, tables, draw)
