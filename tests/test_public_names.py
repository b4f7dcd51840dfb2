"""Names and modules that exist after ``import placement`` alone, in a fresh interpreter."""

import json
import os

import pytest

import placement
from tests.cli.command import output_of

PROGRAM = """
import json, os, sys
import placement
heavy = [name for name in ("numpy", "pandas", "pyomo", "ortools") if name in sys.modules]
listed = dir(placement)
import numpy  # once, for all
for path in sys.argv[1:]:
    # each path in a process where nothing of the package but its root was imported
    if len(sys.argv) > 2 and os.fork():
        os.wait()
        continue
    value = placement
    for name in path.split("."):
        if name not in dir(value):
            break
        value = getattr(value, name)
    else:
        print(json.dumps([path, heavy, getattr(value, "__name__", ""), listed]), flush=True)
    os._exit(0)
"""

MODULES = {
    "analysis": "placement.analysis",
    "analysis.sensitivity": "placement.analysis.sensitivity",
    "databases": "placement.databases",
    "databases.load_system": "load_system",
    "datasets": "placement.datasets",
    "errors": "placement.errors",
    "feasibility.feasible_plans": "placement.feasibility.feasible_plans",
    "io": "placement.io",
    "methods": "placement.methods",
    "model.operations": "placement.model.operations",
    "online": "placement.online",
    "online.dynamic": "placement.online.dynamic",
    "online.reads": "placement.online.reads",
    "online.selection": "placement.online.selection",
    "overtime.moves": "placement.overtime.moves",
    "plan": "placement.plan",
    "problem": "placement.problem",
    "quorumstore": "placement.quorumstore",
    "replay": "placement.overtime.replay",
    "replay.DecayedCounts": "DecayedCounts",
    "report": "placement.report",
    "report.plots": "placement.report.plots",
    "stability": "placement.overtime.moves",
    "tail": "placement.tail",
    "tail.Percentile": "Percentile",
    "testing": "placement.testing",
    "watch": "placement.overtime.watch",
    "workloads": "placement.workloads",
}


@pytest.fixture(scope="module")
def found():
    """Return the report of a fresh interpreter about each path that it finds."""
    answers = {}
    for paths in [[*MODULES]] if hasattr(os, "fork") else [[path] for path in MODULES]:
        lines = output_of(PROGRAM, *paths).splitlines()
        answers |= {path: rest for path, *rest in map(json.loads, lines)}
    return answers


@pytest.mark.parametrize("path", MODULES)
def test_a_module_is_there_after_import_placement(found, path):
    assert path in found
    heavy, name, listed = found[path]
    assert not heavy
    assert name == MODULES[path]
    assert set(placement.__all__) <= set(listed)


def test_a_name_that_does_not_exist_is_an_attribute_error():
    for package in (placement, placement.analysis, placement.online):
        for name in ("nothing", "__main__", "_private"):
            with pytest.raises(AttributeError, match=f"has no attribute '{name}'"):
                getattr(package, name)


def test_an_import_that_fails_inside_a_module_is_not_hidden(tmp_path, monkeypatch):
    folder = tmp_path / "lazy_example"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "from placement.support.lazy import lazy_names\n"
        "__getattr__, __dir__ = lazy_names(__name__)\n"
    )
    (folder / "broken.py").write_text("import no_such_module\n")
    monkeypatch.syspath_prepend(tmp_path)
    import lazy_example

    assert "broken" in dir(lazy_example)
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        _ = lazy_example.broken
