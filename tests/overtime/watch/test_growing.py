"""A table that grows while it is watched."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from placement.overtime.watch.state_store import read_log
from tests.overtime.watch.worlds import Run, csv_text, demand, kinds, reference, settings, world


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_table_that_grows(tmp_path: Path, form: str) -> None:
    """Row by row, byte by byte: an interval counts once a row of the next one is whole."""
    counts, instance, path = demand(5), world(), tmp_path / f"all.{form}"
    text = csv_text(instance, range(5), counts)
    if form == "jsonl":
        head, *lines = text.strip().split("\n")
        text = "".join(
            json.dumps(dict(zip(head.split(","), line.split(","), strict=True))) + "\n"
            for line in lines
        )
    run = Run(settings(2), path, tmp_path / "s.db", follow=True)
    with run:
        run.look()
        rng = np.random.default_rng(0)
        cuts = sorted({*rng.integers(0, len(text), 40).tolist(), len(text)})
        for cut in cuts:
            path.write_text(text[:cut])
            run.watch.poll()
            whole = text[: text[:cut].rfind("\n") + 1].split("\n")
            seen = {line.split(",")[0] for line in whole[1:] if line} if form == "csv" else None
            if seen is not None:
                assert len(run.shown) == max(0, len(seen) - 1)
        assert not run.reports
        assert run.shown == reference(2, counts)[:4]
    with Run(settings(2), path, tmp_path / "s.db", final=True) as run:
        run.look()
        assert run.shown == reference(2, counts)[4:]
        assert not run.reports


def test_a_table_in_which_things_went_wrong(tmp_path: Path) -> None:
    counts, path = demand(9), tmp_path / "all.csv"
    parts = csv_text(world(), range(7), counts[:7]).split("\n")
    rows = {i: [line for line in parts[1:] if line.startswith(f"{i},")] for i in range(7)}
    head = parts[0]
    lines = [head, *rows[0], *rows[1][:2], "1,nobody,weak_read,1", *rows[1][2:], *rows[2], *rows[3]]
    lines += [*rows[2], *rows[3][:1]]  # 2 again, whole; 3 again, in part
    lines += [*rows[4], "x,client a,weak_read,1", *rows[5], *rows[6], *rows[0]]
    path.write_text("\n".join(lines) + "\n")
    with Run(settings(2), path, tmp_path / "s.db", final=True) as run:
        run.look().look()
        assert [d["interval"] for d in run.shown] == ["0", "2", "3", "6"]
        assert kinds(run) == [
            ("malformed", "all.csv", "1"),
            ("duplicate", "all.csv", "2"),
            ("conflict", "all.csv", "3"),
            ("malformed", "all.csv", "4"),
            ("malformed", "all.csv", "5"),
            ("duplicate", "all.csv", "0"),
        ]
    with Run(settings(2), path, tmp_path / "s.db", final=True) as run:
        run.look()
        assert (run.shown, run.reports) == ([], [])
    used = reference(2, counts[[0, 2, 3, 6]])
    documents, _ = read_log(tmp_path / "s.db")
    assert [d["then_ms"] for d in documents] == [d["then_ms"] for d in used]
