"""The figures of the page are those of the kept results."""

import json

import numpy as np
import pytest

from benchmarks.__main__ import main
from benchmarks.online.selection import BIN_MS, CLOSED


def rows():
    return json.loads(CLOSED.path.read_text(encoding="utf-8"))["load step"]


def test_what_the_page_says_of_the_load_step():
    lines = {row["policy"]: row for row in rows() if "p99 line" in row}
    join = int(lines["C3"]["joins_ms"] / BIN_MS)
    after = {name: np.array(lines[name]["p99 line"][join:-1]) for name in ("C3", "DS")}
    assert after["C3"].argmax() == 0
    assert round(after["C3"][0]) == 51
    assert after["C3"][2:].max() < 41
    assert (round(after["DS"].min()), round(after["DS"].max())) == (38, 87)


@pytest.mark.parametrize("part", ["mixes", "load step"])
def test_a_run_shorter_than_its_warm_up_is_refused(part, tmp_path, capsys):
    study = ["run", "online.selection.closed_loop", "--only", part, "--seeds", "1"]
    output = tmp_path / "rows.json"
    assert main([*study, "--operations", "3000", "--output", str(output)]) == 1
    assert "--operations: too few: " in capsys.readouterr().err
