"""pandas in and out."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from placement import InputError, Instance, Operation
from tests.io.worlds import ANY_UNITS, awkward, small


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
        "import placement.model.data_frames\n"
        "print('pandas' in sys.modules, 'pyarrow' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    # hypothesis, which the worlds are drawn with, must not have brought them either
    assert done.stdout.split() == ["False", "False"]
