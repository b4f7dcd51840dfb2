"""Larger objects, copies that take time to arrive, and nodes that miss summaries."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.harness.doc_pages import markdown_table
from benchmarks.online.dynamic.runs import KEYS, K
from benchmarks.online.dynamic.tables import world_of
from heuristics.online.dynamic.cache_names import cache_maker
from placement.online import spawn_streams
from placement.online.dynamic import six_sites
from placement.online.dynamic.cache_simulator import simulate_caches
from placement.online.dynamic.request_traffic import CAUSES, RequestWorkload
from placement.online.dynamic.simulator import simulate
from placement.online.dynamic.vote_servers import VoteSettings

__all__ = ["missed_runs", "missed_section", "size_runs", "sizes_section"]

SIZES = (1.0, 100.0, 1000.0, 10_000.0)
"""KB."""
MEGABITS_PER_S = 100.0
SITE_GIGABITS_PER_S = (math.inf, 10.0, 1.0)
MISSED = (0.0, 0.1, 0.3, 0.6)


def size_runs(seed: int, seconds: float = 200.0, rate: float = 400.0) -> Iterator[dict[str, Any]]:
    """Yield reads of objects of each size: none, ARC, and votes with copies that take time."""
    workload = RequestWorkload(seconds=seconds, rate=rate)
    for size in SIZES:
        world = world_of(six_sites().with_objects_of(size, MEGABITS_PER_S), KEYS, 0.0, seed)
        rng = spawn_streams(seed, CAUSES)["policy"]
        for name, make in (("none", None), ("ARC", cache_maker("ARC", rng))):
            found = simulate_caches(world, workload, make, K, seed)
            late = found.time >= 60
            yield {"kb": size, "policy": name, "read_ms": float(found.read_ms[late].mean())}
        for gigabits in SITE_GIGABITS_PER_S:
            settings = VoteSettings(k=K, copies_per_s=gigabits * 1e6 / (8 * size))
            trace = simulate(world, workload, settings, seed)
            late = trace.time >= 60
            yield {
                "kb": size,
                "policy": "votes",
                "site_gigabits_per_s": None if math.isinf(gigabits) else gigabits,
                "read_ms": float(trace.read_ms[late].mean()),
                "copies": float(trace.active[late].mean()),
                "created_per_s": trace.created / 6 / seconds,
            }


def missed_runs(seed: int) -> Iterator[dict[str, Any]]:
    """Yield runs in which nodes miss summaries of rounds."""
    world = world_of(six_sites(), KEYS, 0.0, seed)
    workload = RequestWorkload(seconds=200, rate=400)
    for missed in MISSED:
        trace = simulate(world, workload, VoteSettings(k=K, missed=missed), seed)
        late = trace.time >= 60
        yield {
            "missed": missed,
            "read_ms": float(trace.read_ms[late].mean()),
            "copies": float(trace.active[late].mean()),
            "correct": float(trace.correct[late].mean()),
            "false_negative": float(np.mean(trace.false_negative[late])),
        }


def _bandwidth(row: Mapping[str, Any]) -> str:
    if row["policy"] != "votes":
        return ""
    limit = row["site_gigabits_per_s"]
    return "no limit" if limit is None else f"{limit:g}"


def sizes_section(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the section about sizes from the kept rows."""
    lines = []
    for row in rows:
        base = next(r for r in rows if r["kb"] == row["kb"] and r["policy"] == "none")
        lines.append(
            [
                f"{row['kb']:,.0f}",
                row["policy"],
                _bandwidth(row),
                f"{row['read_ms']:,.1f}",
                f"{100 * (1 - row['read_ms'] / base['read_ms']):.0f}",
                f"{row['copies']:,.0f}" if "copies" in row else "",
                f"{row['created_per_s']:.1f}" if "created_per_s" in row else "",
            ]
        )
    head = ["KB", "policy", "into a site, Gbit/s", "read, ms", "less than none, %",
            "copies per site", "created per s and site"]  # fmt: skip
    return f"""## Larger objects

40 000 keys, k = 480, 4800 reads per second in all, 200 s with a restart every 30 s, from second 60
on. A read takes the round trips of a new connection (window of 14.6 KB, doubling) and 100 Mbit/s.
New copies come into a site at the bandwidth given.

{markdown_table(head, lines)}
"""


def missed_section(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the section about missed summaries from the kept rows."""
    lines = [
        [
            f"{100 * row['missed']:.0f}",
            f"{row['read_ms']:.1f}",
            f"{row['copies']:,.0f}",
            f"{row['correct']:,.0f}",
            f"{100 * row['false_negative']:.1f}",
        ]
        for row in rows
    ]
    head = ["nodes without the summary of a round, %", "read, ms", "copies per site", "correct",
            "false negatives, %"]  # fmt: skip
    return f"""## Nodes that miss summaries

The same with objects of no size: in every round each node misses the summary with this probability.
A primary without it creates nothing, a holder without it neither deletes nor counts an absence.

{markdown_table(head, lines)}
"""
