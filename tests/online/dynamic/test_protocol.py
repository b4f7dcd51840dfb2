"""Writes and dynamic copies: the claim under its assumptions, and what breaks it without each."""

from __future__ import annotations

import dataclasses

import pytest

from placement.online.dynamic.copy_protocol import ProtocolSettings, simulate_protocol
from tests.effort import examples

ADVERSE = ProtocolSettings(rounds=25, loss=0.1, lost_rounds=0.2, skew_ms=60.0, restarts=0.3)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"static": 1},
        {"static": 5, "dynamic": 1},
        {"slow": 0.5, "slow_factor": 20.0},
        {"skew_ms": 500.0},
        {"lost_rounds": 0.6, "loss": 0.4},
    ],
)
def test_no_read_is_stale_under_all_assumptions(changes):
    settings = dataclasses.replace(ADVERSE, **changes)
    served = 0
    for seed in range(examples(3)):
        run = simulate_protocol(settings, seed)
        assert run.violations().stale == 0, seed
        served += run.dynamic_reads
    assert served > 0  # the dynamic copies did serve


def test_all_copies_have_the_last_version_in_the_end():
    settings = dataclasses.replace(ADVERSE, restarts=0.0)
    assert all(simulate_protocol(settings, seed).behind == 0 for seed in range(examples(3)))


@pytest.mark.parametrize(
    ("changes", "seed"),
    [
        ({"in_order": False}, 0),
        ({"keep_early": False}, 5),
        ({"incarnations": False}, 1),
        ({"persist": False}, 1),
    ],
)
def test_the_checker_finds_stale_reads_where_an_assumption_fails(changes, seed):
    """The checker finds a stale read when one assumption of the proof is dropped."""
    plain = ProtocolSettings(restarts=0.5 if "persist" in changes else 0.0)
    assert simulate_protocol(plain, seed).violations().stale == 0
    assert simulate_protocol(dataclasses.replace(plain, **changes), seed).violations().stale > 0


def test_static_copies_alone_go_backwards_too():
    """Reads of one copy while a write is under way: not what the claim is about."""
    settings = ProtocolSettings(lost_rounds=0.99, rounds=20)
    runs = [simulate_protocol(settings, seed) for seed in range(3)]
    assert sum(run.violations().backwards for run in runs) > 0
    assert sum(run.violations().stale for run in runs) == 0
