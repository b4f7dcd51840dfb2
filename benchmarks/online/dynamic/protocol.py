"""Stale reads of the write protocol, with all assumptions of its proof and without each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from placement.online.dynamic.copy_protocol import ProtocolSettings, simulate_protocol

__all__ = ["VARIANTS", "protocol_runs"]

VARIANTS: dict[str, ProtocolSettings] = {
    "all assumptions": ProtocolSettings(),
    "and lost messages, 20 %": ProtocolSettings(loss=0.2),
    "and lost rounds, 50 %": ProtocolSettings(lost_rounds=0.5),
    "and clocks off by 5 rounds": ProtocolSettings(skew_ms=500.0),
    "and restarts of static nodes": ProtocolSettings(restarts=0.5),
    "messages overtake each other": ProtocolSettings(in_order=False),
    "writes before the copy are dropped": ProtocolSettings(keep_early=False),
    "deletions do not name their copy": ProtocolSettings(incarnations=False),
    "restarts, registrations not persisted": ProtocolSettings(restarts=0.5, persist=False),
    "a cache, evictions in the background": ProtocolSettings(cache=True),
    "a cache, one eviction in ten lost": ProtocolSettings(cache=True, lost_evictions=0.1),
}
"""Name of each row -> its settings."""

RUNS = 200


def protocol_runs() -> Iterator[dict[str, Any]]:
    """Yield the sums over 200 seeds of each variant."""
    for name, settings in VARIANTS.items():
        runs = [simulate_protocol(settings, seed) for seed in range(RUNS)]
        found = [run.violations() for run in runs]
        yield {
            "variant": name,
            "runs": RUNS,
            "reads": sum(each.reads for each in found),
            "dynamic_reads": sum(run.dynamic_reads for run in runs),
            "created": sum(run.created for run in runs),
            "stale": sum(each.stale for each in found),
            "runs_with_stale": sum(each.stale > 0 for each in found),
            "behind": sum(run.behind for run in runs),
        }
