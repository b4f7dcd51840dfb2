"""Demand and deployments from files: what reads back, what order intervals get, what is refused."""

from __future__ import annotations

import importlib.util

import numpy as np
import pandas as pd
import pytest

from placement import Instance
from placement.errors import InputError
from placement.io.formats import column_reader as frames
from placement.overtime.replay import NOBODY
from placement.overtime.replay.deployments import read_deployments, read_trace

WORLD = Instance(
    sites=("fra", "iad"),
    clients=("Paris", "Washington, DC", "Rome"),
    client_rtt=np.ones((3, 2)),
    site_rtt=np.array([[0.0, 80.0], [80.0, 0.0]]),
    counts=np.ones((3, 5)),
    name="world",
)


def _trace(path, instance):
    return read_trace(path, instance)[0]


LONG = "database,interval,client,operation,count\n"


@pytest.fixture
def table(tmp_path):
    def write(text: str, name: str = "demand.csv"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_good_tables_are_read_fast_and_to_the_last_bit(table, tmp_path, monkeypatch):
    """Pandas and Python read equal numbers."""
    rng = np.random.default_rng(1)
    values = [*rng.exponential(size=200), 0.1 + 0.2, 1e-310, 123456789012345678.0, 5]
    rows = "".join(f"a,{i},Paris,weak_read,{value!r}\n".replace("np.float64(", "").replace(")", "")
                   for i, value in enumerate(values))  # fmt: skip
    path = table(LONG + rows)

    def careful(*arguments: object) -> None:
        raise AssertionError("the slow way was taken")

    monkeypatch.setattr(frames, "_SMALL", 0)
    monkeypatch.setattr(frames, "read_table", careful)
    assert _trace(path, WORLD).counts[0, :, 0, 0].tolist() == [float(v) for v in values]
    if importlib.util.find_spec("pyarrow") is not None:
        pd.read_csv(path).to_parquet(tmp_path / "demand.parquet")
        trace = _trace(tmp_path / "demand.parquet", WORLD)
        assert trace.counts.sum() == pytest.approx(sum(values))


def test_names_that_look_like_numbers_stay_names(table):
    """Neither way to read may make one database of 1, 01 and 1.0."""
    rows = "1,1,Paris,weak_read,1\n01,1,Paris,weak_read,2\n1.0,1,Paris,weak_read,3\n"
    for text in (LONG + rows, LONG + rows + "\n   \n"):
        trace = _trace(table(text), WORLD)
        assert trace.databases == ("1", "01", "1.0")
        assert trace.counts[:, 0, 0, 0].tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("labels", "order"),
    [
        (["10", "2", "4"], ["2", "4", "6", "8", "10"]),
        (["night", "day"], ["night", "day"]),
        (["2026-03-02T01:00Z", "2026-03-02T00:30Z"], ["2026-03-02T00:30Z", "2026-03-02T01:00Z"]),
        (
            ["2026-03-28", "2026-03-31", "2026-03-30"],
            ["2026-03-28", "2026-03-29T00:00:00", "2026-03-30", "2026-03-31"],
        ),
        # time stands still for no clock change: 01:30+01:00 is half an hour before 03:00+02:00
        (
            ["2026-03-29T03:30+02:00", "2026-03-29T01:30+01:00", "2026-03-29T03:00+02:00"],
            ["2026-03-29T01:30+01:00", "2026-03-29T03:00+02:00", "2026-03-29T03:30+02:00"],
        ),
        # months are no grid: they follow one another as they are
        (["2026-01-01", "2026-02-01", "2026-03-01"], ["2026-01-01", "2026-02-01", "2026-03-01"]),
    ],
)
def test_the_order_of_intervals(table, labels, order):
    rows = "".join(f"a,{label},Paris,weak_read,{i + 1}\n" for i, label in enumerate(labels))
    trace = _trace(table(LONG + rows), WORLD)
    assert list(trace.intervals) == order
    counts = dict(zip(trace.intervals, trace.counts[0, :, 0, 0], strict=True))
    for i, label in enumerate(labels):
        assert counts.pop(label) == i + 1
    assert not any(counts.values())


GOOD = "a,1,Paris,weak_read,3\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LONG + "\n" + GOOD + "a,1,Lyon,weak_read,3\n", r"row 4: client: no client.*got 'Lyon'"),
        (LONG + GOOD + "a,1,Rome,weak_read,nan\n", r"row 3: count: not a number"),
        (LONG + GOOD + "a,1,Rome,weak_read,inf\n", r"row 3: count: infinite"),
        (LONG + GOOD + "a,1,Rome,weak_read,\n", r"row 3: count: missing value"),
        (LONG + GOOD + "a,1,Rome,weak_read,1_0\n", r"row 3: count: not a number"),
        (LONG + GOOD + "a,1,,weak_read,1\n", r"row 3: client: no name"),
        (LONG + GOOD + ",1,Paris,weak_read,1\n", r"row 3: database: no name"),
        (LONG + GOOD + "a,1,Paris,weak_read\n", r"row 3: a row of another length"),
        (LONG, "no rows"),
        ("", "empty"),
        ("interval,client,weak_read,reads\n1,Paris,1,2\n", "reads: a column that is no operation"),
        (LONG + "a,1,Rome,weak_read,1\na,99999999999,Rome,weak_read,1\na,2,Rome,weak_read,1\n",
         "99,999,999,999 intervals between the first and the last, and only 3"),
        (LONG + "a,2026-03-02T00:00:01,Rome,weak_read,1\n"
         + "".join(f"a,2026-03-02T{hour:02}:00:00,Rome,weak_read,1\n" for hour in range(24)),
         "82,801 intervals.* only 25"),
    ],
)  # fmt: skip
def test_bad_demand_is_refused(table, text, message):
    with pytest.raises(InputError, match=message) as caught:
        _trace(table(text), WORLD)
    assert "demand.csv" in str(caught.value)


def test_parquet_is_checked_too(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "demand.parquet"

    def write(**columns: list) -> None:
        base = {
            "database": ["a", "a"],
            "interval": [1, 2],
            "client": ["Paris"] * 2,
            "weak_read": [1, 2],
        }
        parquet.write_table(pa.table({**base, **columns}), path)

    write()
    assert _trace(path, WORLD).counts[0, :, 0, 0].tolist() == [1, 2]
    write(weak_read=[1, -2])
    with pytest.raises(InputError, match=r"demand.parquet, row 2: weak_read: negative"):
        _trace(path, WORLD)
    write(weak_read=[1, None])
    with pytest.raises(InputError, match="row 2: weak_read: missing value"):
        _trace(path, WORLD)
    write(client=["Paris", "Oslo"])
    with pytest.raises(InputError, match="row 2: client: no client"):
        _trace(path, WORLD)
    write(interval=[1, 1])
    with pytest.raises(InputError, match="row 2: database, interval, client: a row given twice"):
        _trace(path, WORLD)
    path.write_text("no parquet")
    with pytest.raises(InputError, match="not a Parquet file"):
        _trace(path, WORLD)


DEPLOYED = "database,site,role\na,fra,leader\na,iad,replica\nb,iad,voter\n"


def test_deployments(table):
    found = read_deployments(table(DEPLOYED), WORLD, ("b", "a"))
    assert found.replicas.tolist() == [[False, True], [True, True]]
    assert found.voters.tolist() == [[False, True], [True, False]]
    assert found.preferred.tolist() == [NOBODY, 0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (DEPLOYED + "c,iad,voter\n", r"row 5: database: a database without demand: got 'c'"),
        (DEPLOYED + "b,lhr,voter\n", r"row 5, .*unknown site: got 'lhr'|row 5.*unknown site"),
        (DEPLOYED + "b,fra,master\n", r"row 5: role: unknown role: got 'master'"),
        (DEPLOYED + "b,iad,replica\n", r"row 5: site: a site of b given twice"),
        ("database,site,role\na,fra,leader\nb,fra,leader\nb,iad,leader\n", "row 4: role: a second"),
        ("database,site,role\na,fra,leader\nb,fra,replica\n", "database b has no voter"),
        ("database,site,role\na,fra,leader\n", "database b has no voter"),
        ("database,site\na,fra\n", "role: no such column"),
    ],
)
def test_bad_deployments_are_refused(table, text, message):
    with pytest.raises(InputError, match=message):
        read_deployments(table(text, "held.csv"), WORLD, ("a", "b"))
