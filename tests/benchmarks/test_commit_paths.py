"""The study of commit paths: what an interruption keeps, and what a missing system says."""

from contextlib import nullcontext
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from benchmarks.__main__ import main
from benchmarks.commit_paths import study, systems
from benchmarks.commit_paths.layouts import layouts
from benchmarks.commit_paths.report import read_results
from benchmarks.commit_paths.study import Bench


def test_an_interrupted_run_keeps_finished_layouts_and_goes_on_with_the_others(
    monkeypatch, tmp_path
):
    begun, version, row = [], "1", Bench.row
    kind = SimpleNamespace(name="fake", package="p", voters=3, learners=0, version=lambda: version)

    def measured(layout, count, part=""):
        begun.append(part or layout.name)
        yield row(SimpleNamespace(kind=kind), layout, "write", 0, count, 1.0, 1.0, 1.0, part=part)
        if len(begun) == 3:
            raise KeyboardInterrupt

    bench = SimpleNamespace(measured=measured, others=lambda one: measured(one, 1, "loss"))
    monkeypatch.setattr(study, "SYSTEMS", {"fake": kind})
    monkeypatch.setattr(study, "Bench", lambda _: nullcontext(bench))

    def run():
        return study.STUDY.run(
            SimpleNamespace(fit=False, system=["fake"], quick=False, again=False, results=tmp_path)
        )

    every = [one.name for one in layouts(3)]
    with pytest.raises(KeyboardInterrupt):
        run()
    assert [one["layout"] for one in read_results(tmp_path)["fake"]["rows"]] == every[:2]
    assert run() == 0
    assert begun == [*every[:3], *every[2:], "loss"]
    found = read_results(tmp_path)["fake"]["rows"]
    assert [one["layout"] for one in found] == [*every, every[0]]
    monkeypatch.setattr(study, "save_rows", Mock(side_effect=KeyboardInterrupt))
    monkeypatch.setattr(study, "Bench", Mock(side_effect=[nullcontext(bench)]))
    assert run() == 0  # nothing is left to measure: no server starts
    version = "2"  # its name is not given to the rows of the older one
    with pytest.raises(KeyboardInterrupt):
        run()
    assert read_results(tmp_path)["fake"]["version"] == "1"


@pytest.mark.parametrize("name", ["redis", "postgresql", "rabbitmq"])
def test_a_system_that_is_not_installed_names_its_package(name, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(systems.shutil, "which", lambda _: None)
    monkeypatch.setattr("pathlib.Path.glob", lambda *_: iter(()))
    assert main(["run", "commit_paths", "--system", name, "--results", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert f"{name}: not measured" in said
    assert systems.SYSTEMS[name].package in said
    assert not list(tmp_path.iterdir())
