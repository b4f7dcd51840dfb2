"""Elections during reads: the checker on safe groups, on each dropped assumption, and by hand."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from placement.errors import InputError
from placement.online.reads.elections import (
    ElectionSettings,
    ReadPath,
    _ElectionSimulation,
    simulate_elections,
)
from tests.effort import seeds

ADVERSE = ElectionSettings(duration_ms=3000.0, crashes=3.0, cuts=2.0, cut_ms=300.0, down_ms=50.0)
QUIET = ElectionSettings(
    duration_ms=60_000.0, crashes=0.0, slow=0.0, writes=20.0, heartbeat_ms=100.0
)


@pytest.mark.parametrize("path", [ReadPath.LEASEHOLDER, ReadPath.STRONG])
@pytest.mark.parametrize("seed", seeds(3, 30))
def test_strong_reads_stay_linearizable_across_elections(path, seed):
    rng = np.random.default_rng([19, seed])
    settings = dataclasses.replace(
        ADVERSE,
        path=path,
        nodes=int(rng.integers(3, 8)),
        keys=int(rng.integers(1, 4)),
        loss=float(rng.choice([0.0, 0.2])),
        drift=float(rng.choice([0.0, 0.1])),
        crash_any=bool(rng.integers(2)),
        lag_ms=float(rng.choice([0.0, 10.0])),
        heartbeat_ms=float(rng.choice([10.0, 60.0])),
    )
    assert settings.safe
    run = simulate_elections(settings, seed)
    assert run.terms > 1
    assert run.violations.reads > 100
    assert run.violations.linearizable, run.violations.examples


BUSY = {"nodes": 3, "down_ms": 5.0, "crash_any": True, "reads": 1000.0, "crashes": 20.0,
        "heartbeat_ms": 80.0, "writes": 40.0, "cuts": 3.0, "cut_ms": 200.0,
        "duration_ms": 4000.0}  # fmt: skip


@pytest.mark.parametrize(
    ("plain", "change", "seed"),
    [
        (ADVERSE, {"lease": False}, 3),
        (dataclasses.replace(ADVERSE, lag_ms=10.0), {"own_entry": False}, 0),
        (BUSY, {"patient": False}, 5),
        (ADVERSE, {"persist": False, "crash_any": True, "crashes": 20.0}, 0),
        ({"cuts": 3.0, "crashes": 0.0, "reads": 400.0, "duration_ms": 5000.0}, {"drift": 0.8}, 0),
        (ADVERSE, {"path": ReadPath.LOCAL}, 0),
        (ADVERSE, {"path": ReadPath.APPLIED}, 0),
        (dataclasses.replace(ADVERSE, duration_ms=8000.0), {"path": ReadPath.LOG}, 0),
    ],
)
def test_the_checker_finds_what_each_assumption_prevents(plain, change, seed):
    """Equal requests and faults without one of the safeguards give a violation."""
    safe = ElectionSettings(**plain) if isinstance(plain, dict) else plain
    assert simulate_elections(safe, seed).violations.linearizable
    unsafe = dataclasses.replace(safe, **change)
    assert unsafe.safe is (set(change) == {"path"})
    assert not simulate_elections(unsafe, seed).violations.linearizable


def test_idle_latencies_by_hand():
    """Without faults a read of the leader is one way and back, and none at the leader itself."""
    run = simulate_elections(QUIET, 1)
    assert run.terms == 1
    mean = {
        read: np.mean([o.end - o.start for o in run.history if o.read is read and o.start > 1000])
        for read in (True, False)
    }
    assert mean[True] == pytest.approx(0.8 * 2.0, rel=0.05)
    # A write: to the leader, the second of four answers, a lag, and back.
    rng = np.random.default_rng(1)
    trips = np.sort(rng.exponential(1.0, (4, 100_000, 2)).sum(axis=2), axis=0)[1].mean()
    assert mean[False] == pytest.approx(1.6 + trips + 1.0, rel=0.05)


def test_reads_of_majorities_go_on_while_the_leader_is_gone():
    settings = dataclasses.replace(ADVERSE, cuts=0.0, crashes=1.0, duration_ms=10_000.0)
    wait = {}
    for path in (ReadPath.LEASEHOLDER, ReadPath.STRONG, ReadPath.LOCAL):
        run = simulate_elections(dataclasses.replace(settings, path=path), 2)
        assert run.failures
        wait[path] = run.latency(reads=True, after_ms=100.0).mean
        assert run.latency(reads=False, after_ms=100.0).mean > 50  # writes wait for a leader
    assert wait[ReadPath.LOCAL] == 0.0
    assert wait[ReadPath.STRONG] < wait[ReadPath.LEASEHOLDER] / 2


@pytest.mark.parametrize("seed", seeds(4, 40))
def test_logs_of_all_nodes_agree_as_far_as_they_are_committed(seed):
    """State machine safety of Raft, and one leader per term, looked at from outside."""
    elected = []

    class Watched(_ElectionSimulation):
        def append(self, number, entry):
            if entry.key < 0:
                elected.append(entry.term)
            super().append(number, entry)

    settings = dataclasses.replace(ADVERSE, loss=0.2, crash_any=True, crashes=8.0, drift=0.5)
    run = Watched(settings, np.random.SeedSequence(seed))
    run.go()
    assert len(elected) == len(set(elected)) == run.terms > 2
    logs = [node.log[: node.commit] for node in run.nodes]
    longest = max(logs, key=len)
    assert len(longest) > 20
    for log, node in zip(logs, run.nodes, strict=True):
        assert all(mine is theirs for mine, theirs in zip(log, longest, strict=False))
        assert node.applied <= node.commit <= len(node.log)
        terms = [entry.term for entry in node.log]
        assert terms == sorted(terms)
    acked = {id(each) for each in run.requests if not each.read and math.isfinite(each.end)}
    assert acked <= {id(entry.write) for entry in longest}


def test_heartbeats_come_before_elections():
    with pytest.raises(InputError, match="heartbeat_ms"):
        ElectionSettings(heartbeat_ms=150.0)
