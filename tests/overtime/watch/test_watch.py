"""Intervals that a watch uses, and intervals that it leaves out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from placement.overtime.watch.state_store import read_log
from tests.overtime.watch.worlds import (
    Run,
    csv_text,
    demand,
    drop,
    kinds,
    reference,
    settings,
    world,
)


def test_grace_puts_right_what_comes_in_the_wrong_order(tmp_path: Path) -> None:
    counts, folder = demand(6), tmp_path / "in"
    with_grace = settings(2, grace=2)
    folder.mkdir()
    with Run(with_grace, folder, tmp_path / "s.db") as run:
        for i in (1, 0, 3, 2, 5, 4):
            drop(folder, f"{i}.csv", csv_text(world(), [i], counts[i][None]))
            look = run.watch.poll()
            assert look.held <= 2
        assert [d["interval"] for d in run.shown] == ["0", "1", "2", "3"]
        assert not run.reports
    assert run.shown == reference(2, counts)[:4]


@pytest.mark.parametrize("seed", range(4))
def test_every_arrival_is_used_or_reported(tmp_path: Path, seed: int) -> None:
    """Random deliveries with restarts between, against a clerk with a list."""
    rng = np.random.default_rng(seed)
    counts, folder = demand(12), tmp_path / "in"
    folder.mkdir()
    used: list[int] = []  # what the clerk would use, in order
    versions: dict[int, int] = {}
    expected: list[tuple[str, str, str]] = []
    reports: list[tuple[str, str, str]] = []
    shown: list[str] = []
    files = 0
    for _ in range(12):
        fresh: list[tuple[int, str, int, bool]] = []
        for _ in range(rng.integers(0, 4)):
            name, version = f"{rng.integers(1000):03}-{files}.csv", int(rng.integers(2))
            label, bad = int(rng.integers(0, 12)), bool(rng.random() < 0.15)
            text = csv_text(world(), [label], counts[[(label + version) % 12]])
            drop(folder, name, text.replace("client c", "nobody") if bad else text)
            fresh.append((label, name, version, bad and "client c" in text))
            files += 1
        for label, name, version, bad in sorted(fresh):
            if bad:
                expected.append(("malformed", name, str(label)))
            elif label in versions:
                same = versions[label] == version
                expected.append(("duplicate" if same else "conflict", name, str(label)))
            elif used and label < used[-1]:
                expected.append(("late", name, str(label)))
            else:
                used.append(label)
                versions[label] = version
        with Run(settings(1), folder, tmp_path / "s.db") as run:
            run.look()
            reports += kinds(run)
            shown += [str(document["interval"]) for document in run.shown]
    assert shown == [str(label) for label in used]
    assert reports == expected
    assert len(used) + len(expected) == files
    wanted = reference(1, np.stack([counts[(label + versions[label]) % 12] for label in used]))
    documents, _ = read_log(tmp_path / "s.db")
    assert [d["then_ms"] for d in documents] == [d["then_ms"] for d in wanted]
