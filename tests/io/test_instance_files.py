"""Instances as folders and as pandas tables: exact round trips, and every complaint."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from placement import InputError, Instance, Operation, Prices, load
from placement.io import load_instance, save_instance
from placement.io.formats.document import Document, encode_json, jsonable, unjsonable
from placement.io.instance_folder import instance_document, instance_from_document
from tests.cli.command import output_of
from tests.expected import refused
from tests.io.worlds import ANY_UNITS, awkward, same, small


@pytest.mark.filterwarnings(ANY_UNITS)
@pytest.mark.parametrize("tables", ["csv", "parquet"])
@given(world=awkward())
def test_any_instance_comes_back_to_the_last_bit(
    tables: Literal["csv", "parquet"], world: Instance
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        save_instance(world, Path(folder) / "w", tables=tables)
        assert same(load_instance(Path(folder) / "w"), world)


@pytest.mark.filterwarnings(ANY_UNITS)
@given(world=awkward())
def test_any_instance_inside_another_file_comes_back_to_the_last_bit(world: Instance) -> None:
    value = json.loads(encode_json(instance_document(world)))
    assert same(instance_from_document(Document("plan.json", "", value)), world)


@pytest.mark.parametrize("tables", ["csv", "parquet"])
def test_prices_rtts_per_interval_and_unknown_places_come_back(
    tmp_path: Path, tables: Literal["csv", "parquet"]
) -> None:
    world = small(
        client_rtt=np.stack([small().client_rtt, 2 * small().client_rtt]),
        prices=Prices(
            np.array([1.0, 2.5, 0.1]), np.ones((3, 3)) - np.eye(3), 7.25, "EUR", witness_share=0.25
        ),  # was left out of the manifest
        site_coordinates=np.array([[59.9, 10.7], [np.nan, np.nan], [38.9, -77.0]]),
        domains={"country": ("NO", None, "US"), "lat": ("n", "m", "m")},
        operations=(*small().operations[:4], Operation("odd", 1 / 3, 0.1, 0.0, 2.0)),
    )
    save_instance(world, tmp_path / "w", tables=tables)
    assert same(load_instance(tmp_path / "w"), world)
    assert same(load(tmp_path / "w" / "instance.json"), world)  # the manifest itself, too


def test_a_manifest_by_hand_needs_three_tables_only(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("from,a,b\na,0,10\nb,12,0\n")
    # rows and columns in another order, a byte-order mark, Windows line ends
    (tmp_path / "c.csv").write_text("\ufeffwho,b,a\r\nz,5,6\r\ny,7,8\r\n", encoding="utf-8")
    (tmp_path / "n.csv").write_text("client,strong_read,single_group\ny,1,2\n\nz,3,0.5\n")
    (tmp_path / "instance.toml").write_text(
        'format = "replica-placement instance"\nversion = 1\n'
        '[tables]\nsite_rtt = "s.csv"\nclient_rtt = "c.csv"\ncounts = "n.csv"\n'
    )
    world = load_instance(tmp_path)
    assert (world.sites, world.clients) == (("a", "b"), ("z", "y"))
    assert world.client_rtt.tolist() == [[6, 5], [8, 7]]
    assert world.site_rtt.tolist() == [[0, 10], [12, 0]]
    assert world.counts.tolist() == [[[3, 0.5], [1, 2]]]
    assert [operation.name for operation in world.operations] == ["strong_read", "single_group"]
    assert world.name == tmp_path.name
    assert world.intervals == ("1",)


def test_a_table_of_sites_sets_order_places_and_levels(tmp_path: Path) -> None:
    save_instance(small(), tmp_path / "w")
    manifest = json.loads((tmp_path / "w/instance.json").read_text())
    del manifest["levels"], manifest["fingerprint"]
    (tmp_path / "w/instance.json").write_text(json.dumps(manifest))
    (tmp_path / "w/sites.csv").write_text(
        'site,lat,country,lon\nRome,41.9,IT,12.5\n"Washington, DC",,US,\nOslo,59.9,,10.7\n'
    )
    world = load_instance(tmp_path / "w")
    assert world.sites == ("Rome", "Washington, DC", "Oslo")
    assert dict(world.domains) == {"country": ("IT", "US", None)}
    assert world.site_rtt.tolist() == [[0, 99, 42], [101, 0, 97], [40, 97.5, 0]]
    assert world.site_coordinates is not None
    assert np.isnan(world.site_coordinates[1]).all()
    assert world.client_rtt[0].tolist() == [41, 98, 0.5]


def _edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


# file, what is replaced, by what, and what the message says
BROKEN = [
    ("site_rtt.csv", "40.0", "x", ["site_rtt.csv, row 2", "Rome", "not a number", "'x'"]),
    ("site_rtt.csv", "40.0", "4_0", ["not a number", "'4_0'"]),
    ("site_rtt.csv", "40.0", "", ["missing value", "milliseconds >= 0"]),
    ("site_rtt.csv", "40.0", "3,4", ["row of another length", "got 5", "4 cells"]),
    ("site_rtt.csv", "Rome,42", "Oslo,42", ["site_rtt.csv, row 3", "duplicate", "row 2"]),
    ("site_rtt.csv", "Oslo,Rome", "Oslo,Oslo", ["site_rtt.csv: header", "duplicate column"]),
    ("site_rtt.csv", "Oslo,Rome", "Oslo,", ["column 3 has no name"]),
    ("site_rtt.csv", "Rome,42", "Roma,42", ["unknown site: got 'Roma'", "'Rome'?"]),
    ("site_rtt.csv", "Oslo,0.0", "Oslo,1.0", ["'Oslo'", "non-zero", "1.0", "intra-site figure"]),
    ("site_rtt.csv", "Oslo,0.0", '"Oslo,0.0', ["not CSV"]),
    ("sites.csv", "Rome", "Roma", ["unknown site", "'Roma'?"]),
    ("sites.csv", "Rome", "Oslo", ["sites.csv, row 3", "duplicate site", "row 2"]),
    ("client_rtt.csv", "Lagos", "Abuja", ["client_rtt.csv", "unknown client", "'Lagos'"]),
    ("counts.csv", "Lagos", "Abuja", ["counts.csv: client: missing row: got 'Lagos'", "00:00"]),
    ("counts.csv", "weak_read", "weak_raed", ["counts.csv", "'weak_raed'", "'weak_read'?"]),
    ("counts.csv", "00:00,Oslo", "00:00,Bern", ["counts.csv, row 3", "duplicate client", "00:00"]),
    ("counts.csv", "00:30,Oslo", "00:31,Oslo", ["counts.csv", "missing row"]),
    ("counts.csv", "39.0", "38.0", ["fingerprint", "remove the key"]),
    ("instance.json", '"version": 1', '"version": 3', ["instance.json: version", "got 3"]),
    ("instance.json", "placement instance", "placement plan", ["format", "another kind"]),
    ("instance.json", '"intervals"', '"intervalls"', ["unknown key", "'intervals'?"]),
    ("instance.json", '"near": 1.0', '"near": -1.0', ["operations[0]", "near", "-1.0", ">= 0"]),
    ("instance.json", '"near": 1.0', '"near": NaN', ["not JSON", "NaN"]),
    ("instance.json", '"near"', '"naer"', ["operations[0].naer", "'near'?"]),
    ("instance.json", '"sites.csv"', "7", ["tables.sites", "not text", "7"]),
    ("instance.json", "site_rtt.csv", "gone.csv", ["gone.csv: no such file"]),
    ("instance.json", '"site_rtt": "site_rtt.csv",', "", ["tables.site_rtt", "missing table"]),
    ("instance.json", '"name": "small"', '"name": ["small"]', ["instance.json: name", "not text"]),
    ("instance.json", "{", "[", ["not JSON", "row"]),
]


@pytest.mark.parametrize(("file", "old", "new", "words"), BROKEN)
def test_each_complaint_names_file_place_value_and_what_was_expected(
    tmp_path: Path, file: str, old: str, new: str, words: list[str]
) -> None:
    save_instance(small(), tmp_path / "w")
    _edit(tmp_path / "w" / file, old, new)
    with refused(str(tmp_path), *words):
        load_instance(tmp_path / "w")


def test_an_unknown_row_is_an_error_like_a_missing_one(tmp_path: Path) -> None:
    save_instance(small(), tmp_path / "w")
    with (tmp_path / "w/client_rtt.csv").open("a") as sink:
        sink.write("Mars,1,2,3\n")
    with pytest.raises(InputError, match=r"client_rtt\.csv.*unknown client.*'Mars'.*'Oslo'"):
        load_instance(tmp_path / "w")


def test_a_table_that_is_not_text(tmp_path: Path) -> None:
    save_instance(small(), tmp_path / "w")
    (tmp_path / "w/counts.csv").write_bytes(b"client,weak_read\nM\xfcnchen,1\n")
    with pytest.raises(InputError, match=r"counts\.csv: not text: byte 18 is not UTF-8"):
        load_instance(tmp_path / "w")


def test_folders_that_are_no_instance(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file or folder"):
        load_instance(tmp_path / "gone")
    with pytest.raises(InputError, match="a folder without a manifest"):
        load_instance(tmp_path)
    save_instance(small(), tmp_path / "w")
    shutil.copy(tmp_path / "w/instance.json", tmp_path / "w/instance.toml")
    with pytest.raises(InputError, match="two manifests"):
        load_instance(tmp_path / "w")
    with pytest.raises(InputError, match=r"instance\.toml.*written by hand"):
        save_instance(small(), tmp_path / "w", force=True)


def test_a_parquet_table_that_is_none(tmp_path: Path) -> None:
    save_instance(small(), tmp_path / "w", tables="parquet")
    (tmp_path / "w/counts.parquet").write_bytes(b"PAR1 or not")
    with pytest.raises(InputError, match=r"counts\.parquet: not a Parquet file"):
        load_instance(tmp_path / "w")


def test_a_parquet_cell_is_named_by_row_and_column(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    save_instance(small(), tmp_path / "w", tables="parquet")
    table = pa.table({"client": small().clients, **{s: [1.0, 2, 3, -4] for s in small().sites}})
    pq.write_table(table, tmp_path / "w/client_rtt.parquet")
    with pytest.raises(InputError, match=r"client_rtt\.parquet, row 4: Oslo: negative: got -4\.0"):
        load_instance(tmp_path / "w")


def test_half_of_a_surrogate_pair_cannot_be_written_and_nothing_is(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not text"):
        save_instance(small(name="\ud800"), tmp_path / "w")
    for name in ("\udfff", "a\0b"):
        with pytest.raises(InputError, match=r"sites: not a name: .* expected text without NUL"):
            small(sites=("Oslo", name, "Rome"))
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_table_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"'xlsx'.*'csv' or 'parquet'"):
        save_instance(small(), tmp_path / "w", tables="xlsx")  # type: ignore[arg-type]  # that is it


def test_without_pyarrow_the_error_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    from placement import MissingDependencyError

    save_instance(small(), tmp_path / "w", tables="parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingDependencyError, match=r"pip install '\.\[parquet\]'"):
        load_instance(tmp_path / "w")
    with pytest.raises(MissingDependencyError, match=r"pip install '\.\[parquet\]'"):
        save_instance(small(), tmp_path / "v", tables="parquet")
    assert not (tmp_path / "v").exists()


def test_numbers_that_json_does_not_have_survive_in_a_certificate() -> None:
    value = {"a": [float("inf"), -0.0, (1, 2)], "n": np.float64(0.1), "m": np.arange(2), "t": True}
    back = unjsonable(json.loads(encode_json(jsonable(value, "certificate"))))
    assert back == {"a": [float("inf"), 0.0, [1, 2]], "n": 0.1, "m": [0, 1], "t": True}
    with pytest.raises(InputError, match=r"certificate\.x\[1\].*cannot be written"):
        jsonable({"x": [1, object()]}, "certificate")
    with pytest.raises(InputError, match="not a key"):
        jsonable({1: 2}, "certificate")


@pytest.mark.filterwarnings(ANY_UNITS)
@given(world=awkward(), seed=st.integers(0, 2**32 - 1))
def test_any_instance_comes_back_whatever_the_order(world: Instance, seed: int) -> None:
    assume(not {"lat", "lon", "site"} & set(world.domains))
    frames = world.to_frames()
    rng = np.random.default_rng(seed)
    for name in ("client_rtt", "site_rtt"):
        frame = frames[name]
        rows, columns = (rng.permutation(n) for n in frame.shape)
        frames[name] = frame.iloc[rows, columns]
    counts = frames["counts"]
    frames["counts"] = counts.iloc[:, rng.permutation(counts.shape[1])]
    back = Instance.from_frames(**frames, name=world.name, provenance=world.provenance)
    assert back == world.replace(prices=None)
    assert back.client_rtt.tobytes() == world.client_rtt.tobytes()
    for one, other in (
        (back.site_coordinates, world.site_coordinates),
        (back.client_coordinates, world.client_coordinates),
    ):
        assert (one is None) == (other is None)
        assert one is None or np.array_equal(one, other, equal_nan=True)
    assert (back.name, back.provenance) == (world.name, world.provenance)


def test_the_least_that_is_needed() -> None:
    world = Instance.from_frames(
        site_rtt=pd.DataFrame([[0, 3], [4, 0]], index=["a", "b"], columns=["a", "b"]),
        client_rtt=pd.DataFrame([[1, 2]], index=["x"], columns=["b", "a"]),
        counts=pd.DataFrame({"weak_read": [7]}, index=["x"]),
        sites=pd.DataFrame({"site": ["b", "a"], "country": ["B", None], "lat": 1.0, "lon": 2.0}),
    )
    assert world.sites == ("b", "a")
    assert world.site_rtt.tolist() == [[0, 4], [3, 0]]
    assert world.client_rtt.tolist() == [[1, 2]]
    assert dict(world.domains) == {"country": ("B", None)}
    assert world.counts.tolist() == [[[7]]]


def test_intervals_are_matched_by_label() -> None:
    frames = small(client_rtt=np.stack([small().client_rtt, 2 * small().client_rtt])).to_frames()
    swapped = frames["client_rtt"].iloc[[4, 5, 6, 7, 0, 1, 2, 3]]
    assert Instance.from_frames(**{**frames, "client_rtt": swapped}) == Instance.from_frames(
        **frames
    )


def _frames() -> dict[str, pd.DataFrame]:
    return small().to_frames()


def test_complaints_name_table_row_and_column() -> None:
    broken = _frames()
    broken["client_rtt"].loc["Bern", "Rome"] = np.nan
    with pytest.raises(InputError, match="client_rtt: missing value at client 'Bern', site 'Rome'"):
        Instance.from_frames(**broken)
    broken = _frames()
    broken["counts"].loc[("00:30", "Lagos"), "weak_read"] = -1
    with pytest.raises(
        InputError, match="counts: out of range at interval '00:30', client 'Lagos', operation 'we"
    ):
        Instance.from_frames(**broken)
    with pytest.raises(InputError, match="site_rtt: 1 of 3 sites missing: got 'Rome'"):
        Instance.from_frames(**{**_frames(), "site_rtt": _frames()["site_rtt"].drop("Rome")})
    with pytest.raises(InputError, match="client_rtt: unknown client: got 'Mars'"):
        Instance.from_frames(**{**_frames(), "client_rtt": _with_row(_frames()["client_rtt"])})
    twice = pd.concat([_frames()["site_rtt"], _frames()["site_rtt"].loc[["Oslo"]]])
    with pytest.raises(InputError, match="site_rtt: duplicate name: got 'Oslo'"):
        Instance.from_frames(**{**_frames(), "site_rtt": twice})
    with pytest.raises(InputError, match="sites: not a name: got 7"):
        Instance.from_frames(**{**_frames(), "sites": pd.DataFrame(index=[7, 8, 9])})
    with pytest.raises(InputError, match="counts: not a table: got 'list'"):
        Instance.from_frames(**{**_frames(), "counts": [[1]]})  # type: ignore[arg-type]  # that is it
    with pytest.raises(InputError, match="site_rtt: not numbers"):
        Instance.from_frames(**{**_frames(), "site_rtt": _frames()["site_rtt"].map("{} ms".format)})


def _with_row(frame: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([frame, pd.DataFrame([[1.0, 2, 3]], index=["Mars"], columns=frame.columns)])


def test_operations_are_named_or_given() -> None:
    frames = _frames()
    del frames["operations"]
    assert Instance.from_frames(**frames) == small()
    odd = frames["counts"].rename(columns={"weak_read": "odd"})
    with pytest.raises(InputError, match="counts: unknown operation: got 'odd'"):
        Instance.from_frames(**{**frames, "counts": odd})
    kinds = [Operation("odd", near=0.5), *small().operations[1:]]
    world = Instance.from_frames(**{**frames, "counts": odd}, operations=kinds)
    assert world.operations[0] == Operation("odd", near=0.5)
    table = pd.DataFrame({"near": [1.0], "relay": [0.0]}, index=["odd"])
    with pytest.raises(InputError, match="operations: missing column: got 'direct'"):
        Instance.from_frames(**{**frames, "counts": odd}, operations=table)


def test_a_level_called_like_a_coordinate_is_refused_not_confused() -> None:
    with pytest.raises(InputError, match="level with the name of a coordinate: got 'lat'"):
        small(domains={"lat": ("a", "b", "c")}).to_frames()


def test_reading_and_writing_files_imports_no_pandas() -> None:
    script = (
        "import sys, tempfile, placement.io as io\n"
        "from tests.io.worlds import small\n"
        "with tempfile.TemporaryDirectory() as f:\n"
        "    io.save_instance(small(), f + '/w'); io.load_instance(f + '/w')\n"
        "import placement.model.instance\n"
        "print('pandas' in sys.modules, 'pyarrow' in sys.modules)"
    )
    # hypothesis, which the worlds are drawn with, must not have brought them either
    assert output_of(script).split() == ["False", "False"]
