"""Sections of the page of leaseholder and quorum reads: write latency, elections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.harness.pictures import rows as table

__all__ = ["claims_sections"]

Rows = Sequence[Mapping[str, Any]]


def claims_sections(document: Mapping[str, Any]) -> list[str]:
    """Return the lines of the two sections from the kept results.

    Parameters
    ----------
    document
        ``benchmarks/results/online_reads_claims.json``.
    """
    return [
        *_write_latency(document["write latency"]),
        "",
        *_elections(document["elections"]),
    ]


def _write_latency(rows: Rows) -> list[str]:
    body = []
    pairs = zip(rows[::2], rows[1::2], strict=True)
    for alone, quorum in pairs:
        body.append(
            [
                f"{4 * quorum['visit_ms']:g}",
                quorum["clients"],
                f"{quorum['throughput'] / alone['throughput']:.2f}",
                f"{alone['write_ms']:.1f}",
                f"{quorum['write_ms']:.1f}",
                f"{alone['write_ms'] / quorum['write_ms']:.2f}",
                f"{100 * quorum['leader']:.0f} % / {100 * quorum['busiest']:.0f} %",
            ]
        )
    return [
        "## The write latency against the work of a write at the leaseholder",
        "",
        "Made by `python -m benchmarks run online.reads.claims`, as are the sections below",
        "(`benchmarks/results/online_reads_claims.json`). 95 % reads, gateways' work 0.7 ms, and",
        "x = 2/7, which makes all nodes equally busy only where a write costs the leaseholder no",
        "more than a follower (0.4 ms).",
        "",
        *table(
            [
                "write at L, ms",
                "clients",
                "throughput, times",
                "write ms, leaseholder",
                "write ms, quorum",
                "times faster",
                "L / busiest used",
            ],
            body,
        ),
        "",
        "Source: about 60 % more throughput and a quarter of the write latency.",
    ]


def _elections(rows: Rows) -> list[str]:
    body = [
        [
            row["variant"],
            f"{row['failures']:,} / {row['terms']:,}",
            f"{row['reads']:,}",
            f"{row['stale']:,}",
            f"{row['other']:,}",
            f"{row['runs_with_any']} of {row['runs']}",
            f"{row['read_p50']:.1f} / {row['read_ms']:.1f}",
            f"{row['read_after_ms']:.0f}",
            f"{row['write_after_ms']:.0f}",
        ]
        for row in rows
    ]
    return [
        "## Reads across elections",
        "",
        "A group of five with three keys, 200 reads and 50 writes a second, messages of 1 ms (one",
        "in twenty takes 20 times as long), elections after 150 to 300 ms, leases of 120 ms.",
        "Leaders crash for 0.5 s and are cut off from the others for 0.5 s, each about once in two",
        "seconds, 20 s a run; *many restarts*: three nodes, 20 crashes a second for 5 ms.",
        "",
        *table(
            [
                "reads",
                "failures / elections",
                "answered",
                "stale",
                "otherwise wrong",
                "runs with any",
                "read ms, median / mean",
                "read ms after a failure",
                "write ms after a failure",
            ],
            body,
        ),
        "",
        "After a failure: operations that start within 300 ms of a leader's crash or cut.",
    ]
