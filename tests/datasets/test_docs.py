"""The page on data sets: its code runs, and its figures are those of the package."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from placement import datasets
from placement.datasets.distance_rtt import RouteModel
from placement.errors import MissingDependencyError
from placement.workloads import MIXES

PAGE = Path(__file__).resolve().parents[2] / "docs/datasets.md"


@pytest.fixture(scope="module")
def page() -> str:
    return PAGE.read_text(encoding="utf-8")


def test_the_code_runs(page):
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert len(blocks) == 2
    for code in blocks:
        names: dict[str, object] = {}
        exec(compile(code, str(PAGE), "exec"), names)
        assert len(names) > 2
    assert names["instance"].counts.shape == (672, 60, 5)


@pytest.mark.parametrize("name", datasets.names())
def test_the_table_of_data_sets_counts_right(page, name):
    try:
        instance = datasets.load(name)
    except MissingDependencyError as error:
        pytest.skip(str(error))
    row = next(line for line in page.splitlines() if line.startswith(f"| `{name}` |"))
    _, _, sites, clients, rtts, levels, _ = (cell.strip() for cell in row.split("|"))
    assert re.match(rf"{len(instance.sites)} ", sites)
    assert re.search(rf"\b{len(instance.clients)} (cities|regions)", clients)
    assert levels == ", ".join(instance.levels[1:])
    assert rtts.strip("*") in instance.provenance[0]


def test_the_table_of_mixes_is_that_of_the_package(page):
    for name, per_cent in MIXES.items():
        row = next(line for line in page.splitlines() if line.strip().startswith(f"| {name} |"))
        assert [float(cell) for cell in row.split("|")[2:7]] == list(per_cent)


def test_the_distance_model_is_that_of_the_package(page):
    model = RouteModel()
    line = (
        f"min({model.local_ms:g} + {model.near_ms_per_1000_km:g} x, "
        f"{model.fit.intercept_ms:g} + {model.fit.slope_ms_per_1000_km:g} x)"
    )
    assert line in page
    assert f"log standard deviation {model.spread:g}" in page
    assert f"below {model.floor:g} times light" in page
    assert model.detours == 1 / 5
    assert "except for a fifth of the pairs" in page
