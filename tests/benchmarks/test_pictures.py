"""The pictures of the pages are drawn from the kept results, by the code as it is."""

import shlex
from pathlib import Path

import numpy as np
import pytest

from benchmarks.__main__ import main
from benchmarks.harness.machine import ROOT
from benchmarks.harness.study import MODULES, load_study

DRAWN = [name for name in MODULES if load_study(name).draw is not None]


def assert_drawn(folder):
    """Drawn again they are the same pictures; text may differ a little between versions."""
    image = pytest.importorskip("matplotlib.image")
    drawn = sorted(path.name for path in folder.iterdir())
    assert drawn
    for name in drawn:
        new, kept = (image.imread(place / name) for place in (folder, ROOT / "docs/figures"))
        assert np.mean(np.abs(new - kept).max(axis=2) > 0.1) < 0.002, name


@pytest.mark.parametrize("name", DRAWN)
def test_the_figures_of_a_study_are_those_of_its_kept_results(name, tmp_path):
    load_study(name).draw(tmp_path)
    assert_drawn(tmp_path)


def test_the_picture_of_gaps_is_that_of_the_command_on_the_page(tmp_path):
    page = (ROOT / "docs/benchmarks.md").read_text(encoding="utf-8").replace("\\\n", "")
    command = page[page.index("report benchmarks/results/gap.jsonl --only") :]
    verb, rows, *options, picture = shlex.split(command[: command.index("```")])
    main([verb, str(ROOT / rows), *options, str(tmp_path / Path(picture).name)])
    assert_drawn(tmp_path)
