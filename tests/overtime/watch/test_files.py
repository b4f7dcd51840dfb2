"""Intervals of a watch as files that come: malformed, half written, growing, left out."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import numpy as np
import pytest

from placement.errors import InputError
from placement.io.formats.tables import parquet_bytes
from placement.overtime.watch.arrivals import interval_key
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

BAD = {
    "no client of the instance": "interval,client,operation,count\n1,nobody,weak_read,1\n",
    "no operation of the instance": "interval,client,operation,count\n1,client a,read,1\n",
    "negative": "interval,client,operation,count\n1,client a,weak_read,-1\n",
    "infinite": "interval,client,operation,count\n1,client a,weak_read,inf\n",
    "not a number": "interval,client,operation,count\n1,client a,weak_read,nan\n",
    "missing value": "interval,client,operation,count\n1,client a,weak_read,\n",
    "a row given twice": "interval,client,operation,count\n1,client a,weak_read,1\n"
    "1,client a,weak_read,1\n",
    "not a place in time": "interval,client,operation,count\nlater,client a,weak_read,1\n",
    "another length": "interval,client,operation,count\n1,client a,weak_read\n",
    "no such column": "client,operation,count\nclient a,weak_read,1\n",
    "operation: no such column": "interval,client,operations,count\n1,client a,weak_read,1\n",
    "several databases": "database,interval,client,operation,count\nd,1,client a,weak_read,1\n",
    "two kinds": "interval,client,operation,count\n1,client a,weak_read,1\n"
    "2026-01-01,client a,weak_read,1\n",
    "no rows": "interval,client,operation,count\n",
    "empty": "\n",
}


@pytest.mark.parametrize("words", BAD)
def test_malformed_files_are_reported_and_skipped(tmp_path: Path, words: str) -> None:
    counts, folder = demand(3), tmp_path / "in"
    for i in (0, 2):
        drop(folder, f"{i}.csv", csv_text(world(), [i], counts[i][None]))
    drop(folder, "bad.csv", BAD[words])
    with Run(settings(2), folder, tmp_path / "s.db") as run:
        run.look()
        ((kind, source, _, message, _),) = run.reports
        assert (kind, source) == ("malformed", "bad.csv")
        assert words in message
        assert "bad.csv" not in message  # the report names it already
        assert [d["interval"] for d in run.shown] == ["0", "2"]


LINE = '{"interval": %s, "client": "client a", "operation": "weak_read", "count": %s}\n'
POISON = {
    "label.jsonl": LINE % ("9" * 5000, "1"),
    "text.jsonl": LINE % ('"' + "9" * 5000 + '"', "1"),
    "count.jsonl": LINE % ("1", "9" * 5000),
    "power.jsonl": LINE % ("1", "1" + "0" * 400),
    "large.csv": "interval,client,operation,count\n1,client a,weak_read,1e308\n",
    "large.jsonl": LINE % ("1", "1e308") + LINE.replace("client a", "client b") % ("1", "1e308"),
    "nan.jsonl": LINE % ("1", "NaN"),
    "twice.jsonl": (LINE % ("1", "1")).replace("{", '{"count": 2, '),
    "nested.jsonl": "[" * 100_000 + "\n",
    "surrogate.jsonl": LINE % ('"\\ud800"', "1"),
    "field.csv": "interval,client,operation,count\n1," + "x" * 200_000 + ",weak_read,1\n",
    "broken.parquet": "PAR1 and nothing that follows from it PAR1",
}


@pytest.mark.parametrize("name", POISON)
def test_a_file_that_cannot_be_read_is_set_aside(tmp_path: Path, name: str) -> None:
    counts, folder = demand(2), tmp_path / "in"
    drop(folder, name, POISON[name])
    drop(folder, "zz.csv", csv_text(world(), [8], counts[:1]))
    with Run(settings(2), folder, tmp_path / "s.db") as run:
        run.look()
        assert [(kind, source) for kind, source, *_ in run.reports] == [("malformed", name)]
        assert [d["interval"] for d in run.shown] == ["8"]
    drop(folder, "zzz.csv", csv_text(world(), [9], counts[1:]))
    with Run(settings(2), folder, tmp_path / "s.db") as run:
        run.look()
        assert run.reports == []
        assert [d["interval"] for d in run.shown] == ["9"]


def test_a_time_that_python_cannot_hold_is_set_aside(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "in").mkdir()
    columns = {"client": ["client a"], "operation": ["weak_read"], "count": [1.0]}
    times = pa.array([2**62], pa.timestamp("us"))
    parquet.write_table(pa.table({"interval": times, **columns}), tmp_path / "in" / "t.parquet")
    with Run(settings(2), tmp_path / "in", tmp_path / "s.db") as run:
        run.look()
        assert kinds(run) == [("malformed", "t.parquet", "")]


def test_a_bad_line_of_a_table_that_grows_is_named_until_it_is_mended(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    lines = [LINE % (i, "5") for i in range(4)]
    path.write_text("".join([*lines[:2], LINE % ("9" * 5000, "1"), *lines[2:]]))
    with Run(settings(2), path, tmp_path / "s.db", final=True) as run:
        run.look()
        assert run.shown == []
        ((kind, source, _, message, _),) = run.reports
        assert (kind, source) == ("malformed", "rows.jsonl")
        assert message.startswith("row 3: ")
        path.write_text("".join(lines))
        run.look()
        assert [d["interval"] for d in run.shown] == ["0", "1", "2", "3"]


def test_a_pipe_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    os.mkfifo(tmp_path / "in" / "pipe.csv")
    for source in (tmp_path / "in", tmp_path / "in" / "pipe.csv"):
        with Run(settings(2), source, tmp_path / f"{source.name}.db") as run:
            run.look()
            assert [report[1] for report in run.reports] == ["pipe.csv"]


def test_a_file_that_is_too_large_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts, folder = demand(1), tmp_path / "in"
    good = csv_text(world(), [8], counts)
    monkeypatch.setattr("placement.io.formats.files.LARGEST_FILE", len(good))
    drop(folder, "large.csv", good + good)
    drop(folder, "zz.csv", good)
    with Run(settings(2), folder, tmp_path / "s.db") as run:
        run.look()
        ((kind, source, _, message, _),) = run.look().reports
        assert (kind, source) == ("unreadable", "large.csv")
        assert "too large" in message
        assert [d["interval"] for d in run.shown] == ["8"]
    with Run(settings(2), folder / "large.csv", tmp_path / "t.db") as run:
        assert kinds(run.look()) == [("unreadable", "large.csv", "")]
        assert run.shown == []


def test_one_bad_interval_of_a_file_does_not_spoil_the_others(tmp_path: Path) -> None:
    counts = demand(3)
    text = csv_text(world(), [0, 1, 2], counts).replace("\n1,client c,", "\n1,client q,", 1)
    drop(tmp_path / "in", "all.csv", text)
    with Run(settings(2), tmp_path / "in", tmp_path / "s.db") as run:
        run.look()
        assert [d["interval"] for d in run.shown] == ["0", "2"]
        assert kinds(run) == [("malformed", "all.csv", "1")]
        # mended before anything later is used it would have counted; now it is late
        drop(tmp_path / "in", "all.csv", csv_text(world(), [0, 1, 2], counts))
        run.look()
        assert kinds(run)[1:] == [("late", "all.csv", "1")]


def test_a_mended_file_counts_if_it_comes_in_time(tmp_path: Path) -> None:
    counts = demand(2)
    drop(tmp_path / "in", "0.csv", csv_text(world(), [0], counts[:1]))
    drop(tmp_path / "in", "1.csv", "interval,client,operation,count\n1,nobody,weak_read,1\n")
    with Run(settings(2), tmp_path / "in", tmp_path / "s.db") as run:
        run.look()
        drop(tmp_path / "in", "1.csv", csv_text(world(), [1], counts[1:]))
        run.look()
        assert run.shown == reference(2, counts)


def test_files_that_are_not_whole_wait(tmp_path: Path) -> None:
    counts, folder = demand(2), tmp_path / "in"
    folder.mkdir()
    text = csv_text(world(), [0], counts[:1])
    (folder / "0.csv").write_text(text[:-1])
    for name in (".1.csv", "1.csv.part", "1.csv.tmp", "1.csv~"):
        (folder / name).write_text(csv_text(world(), [1], counts[1:]))
    (folder / "folder.csv").mkdir()
    with Run(settings(2), folder, tmp_path / "s.db") as run:
        run.watch.resume()
        assert run.watch.poll().waiting == ("0.csv",)
        assert (run.shown, kinds(run)) == ([], [("incomplete", "0.csv", "")])
        (folder / "0.csv").write_text(text)
        assert run.watch.poll().waiting == ()
        assert run.shown == reference(2, counts[:1])


def test_young_files_wait_until_they_have_settled(tmp_path: Path) -> None:
    counts, folder = demand(1), tmp_path / "in"
    drop(folder, "0.csv", csv_text(world(), [0], counts))
    with Run(settings(2), folder, tmp_path / "s.db", settle=1000.0) as run:
        assert run.watch.poll().waiting == ("0.csv",)
        os.utime(folder / "0.csv", (time.time() - 2000, time.time() - 2000))
        assert run.watch.poll().used == 1


def test_strange_files_are_named_once(tmp_path: Path) -> None:
    drop(tmp_path / "in", "README", "hello\n")
    with Run(settings(2), tmp_path / "in", tmp_path / "s.db") as run:
        run.look().look()
        assert kinds(run) == [("ignored", "README", "")]


def test_names_of_any_bytes(tmp_path: Path) -> None:
    counts, folder = demand(2), tmp_path / "in"
    folder.mkdir()
    text = csv_text(world(), [0], counts[:1]).encode()
    try:
        Path(os.fsdecode(bytes(folder) + b"/\xff0.csv")).write_bytes(text)
    except OSError:
        pytest.skip("a file system of texts")
    Path(os.fsdecode(bytes(folder) + b"/\xff1.csv")).write_bytes(text)
    (folder / "2.jsonl").write_text('{"interval": 1, "client": "client a", "\\ud800": 1}\n')
    with Run(settings(2), folder, tmp_path / "s.db") as run:
        run.look().look()
        assert kinds(run) == [("malformed", "2.jsonl", ""), ("duplicate", "\\xff1.csv", "0")]
        assert len(run.shown) == 1


def test_the_forms_of_a_file_say_the_same(tmp_path: Path) -> None:
    counts, instance = demand(4), world()
    names = [operation.name for operation in instance.operations]
    labels = [f"2026-03-01T00:{30 * i % 60:02}Z" for i in range(2)] + [
        "2026-03-01T01:00+00:00",
        "5",
    ]
    wide = ["interval,client," + ",".join(names)]
    lines, rows = [], []
    for label, table in zip(labels[:3], counts[:3], strict=True):
        for client, row in zip(instance.clients, table, strict=True):
            wide.append(f"{label},{client}," + ",".join(map(repr, row.tolist())))
            cells = dict(zip(names, row.tolist(), strict=True))
            lines.append(json.dumps({"interval": label, "client": client, **cells}))
            rows.append((label, client, *row.tolist()))
    found = []
    for suffix, content in (
        ("csv", ("\n".join(wide) + "\n").encode()),
        ("tsv", ("\n".join(wide).replace(",", "\t") + "\n").encode()),
        ("jsonl", ("\n".join(lines) + "\n").encode()),
        ("parquet", parquet_bytes(["interval", "client", *names], rows)),
    ):
        folder = tmp_path / suffix
        folder.mkdir()
        (folder / f"all.{suffix}").write_bytes(content)
        with Run(settings(2), folder, tmp_path / f"{suffix}.db") as run:
            run.look()
            assert not run.reports
            found.append(run.shown)
    assert found[0] == found[1] == found[2] == found[3]
    assert len(found[0]) == 3
    # a series of times takes no numbers
    drop(tmp_path / "csv", "more.csv", csv_text(instance, ["5"], counts[3:]))
    with Run(settings(2), tmp_path / "csv", tmp_path / "csv.db") as run:
        run.look()
        assert kinds(run) == [("malformed", "more.csv", "5")]


@pytest.mark.parametrize(
    ("label", "key"),
    [
        ("7", ("number", 7)),
        ("-3", ("number", -3)),
        ("1970-01-01", ("time", 0)),
        ("1970-01-01T00:00:00.000001Z", ("time", 1)),
        ("1969-12-31T23:00-01:00", ("time", 0)),
    ],
)
def test_places_in_time(label: str, key: tuple[str, int]) -> None:
    assert interval_key(label) == key


@pytest.mark.parametrize("label", ["", "monday", "1.5", "1_000", "2026-13-01", "9" * 30])
def test_no_places_in_time(label: str) -> None:
    with pytest.raises(InputError):
        interval_key(label)


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
