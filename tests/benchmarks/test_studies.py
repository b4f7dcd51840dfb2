"""Studies are reached by `python -m benchmarks run`; pages and tables are those of the results."""

from __future__ import annotations

import csv
import itertools
import json
import math
import re
import subprocess
import sys
from collections import Counter, defaultdict
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest

from benchmarks.__main__ import _study, main
from benchmarks.commit_paths import study
from benchmarks.commit_paths.study import layouts
from benchmarks.commit_paths.study import read_results as read_measured
from benchmarks.exact import speed
from benchmarks.harness import machine
from benchmarks.harness.result_rows import contradictions, read_results
from benchmarks.harness.results import (
    RESULTS,
    existing_rows,
    read_json,
    read_rows,
    save_csv,
    save_json,
    tables_of,
    with_tables,
)
from benchmarks.harness.study import INTERRUPTED, MODULES, load_study, summary
from benchmarks.harness.suites import SUITES
from benchmarks.harness.tier3_worlds import SIGMA, world
from benchmarks.paper_tier3 import by_demand, concentrated, gains, kept, summary_11
from benchmarks.tail import STUDY
from placement import Problem, load
from placement.errors import InputError, UnsupportedError
from placement.methods.options import Options
from placement.methods.registry import load_method, run

BENCHMARKS = RESULTS.parent
ROOT = BENCHMARKS.parent


def _modules_with(text: str) -> set[str]:
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in BENCHMARKS.rglob("*.py")
        if text in path.read_text(encoding="utf-8")
    }


def test_every_study_is_in_the_table_and_has_no_other_entry() -> None:
    """A study declares itself once; there is one command line, in one module."""
    assert _modules_with("\nSTUDY = ") == {one for one in MODULES.values() if ":" not in one}
    assert _modules_with("argparse.ArgumentParser(\n") == {"benchmarks.__main__"}
    assert _modules_with('\nif __name__ == "__main__"') == {
        "benchmarks.__main__",
        "benchmarks.exact.scale_cell",
        "benchmarks.harness.cell_process",
        "benchmarks.live.slowdisk",
        "benchmarks.live.wan",
    }
    assert not set(MODULES) & set(SUITES)


@pytest.mark.parametrize("name", MODULES)
def test_a_study_has_a_help_and_its_files_are_there(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The help begins with the summary and shows the command; committed files have their names."""
    with pytest.raises(SystemExit) as ended:
        main(["run", name, "--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert summary(name) in shown
    assert f"python -m benchmarks run {name}" in shown
    assert main(["list", name]) == 0
    first, *paths = capsys.readouterr().out.splitlines()
    assert first == summary(name)
    assert paths
    assert [path for path in paths if not (ROOT / path).is_file()] == []


def test_a_list_imports_no_study() -> None:
    code = (
        "import sys\n"
        "from benchmarks.__main__ import main\n"
        "assert main(['list']) == 0\n"
        "from benchmarks.harness.study import MODULES\n"
        "modules = {one.partition(':')[0] for one in MODULES.values()}\n"
        "print(sorted(modules & set(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "[]\n")
    assert all(f"\n{name} " in done.stdout for name in (*MODULES, *list(SUITES)))


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.csv")), ids=lambda path: path.name)
def test_tables_are_written_as_they_are_committed(path: Path, tmp_path: Path) -> None:
    data = path.read_bytes()
    heads, *rows = csv.reader(data.decode().splitlines())
    save_csv(tmp_path / "new" / path.name, heads, rows)
    assert (tmp_path / "new" / path.name).read_bytes() == data


@pytest.mark.parametrize("name", MODULES)
def test_documents_are_written_as_they_are_committed(name: str, tmp_path: Path) -> None:
    for result in load_study(name).results:
        path = RESULTS / result
        if path.suffix == ".json" and path.exists():
            data = path.read_bytes()
            document = json.loads(data)
            save_json(tmp_path / result, document, indent=len(data[2:]) - len(data[2:].lstrip()))
            assert (tmp_path / result).read_bytes() == data


def test_a_report_without_results_names_the_file(tmp_path):
    missing = tmp_path / "online_reads.csv"
    with pytest.raises(InputError, match=r"online_reads\.csv: no results to report"):
        existing_rows(missing)


def test_a_machine_is_described_in_full() -> None:
    described = machine.describe(["numpy", "no-such-distribution"])
    assert json.loads(json.dumps(described)) == described
    assert isinstance(described["cores"], int)
    assert described["cores"] >= 1
    versions = described["versions"]
    assert isinstance(versions, dict)
    assert set(versions) == {"replica-placement", "numpy"}
    assert re.fullmatch(r"[0-9a-f]{12}\+?|unknown", str(described["commit"]))
    sentence = machine.sentence(described)
    assert f"{described['cpu']}, {described['cores']} cores" in sentence
    assert str(described["commit"])[:9] in sentence


REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = REPOSITORY / "docs" / "benchmarks.md"


REPORTED = {
    name: one
    for name, one in ((name, _study(name)) for name in (*MODULES, *SUITES))
    if one.report is not None
}


@pytest.mark.parametrize("name", REPORTED)
def test_a_page_is_what_its_results_say(name: str) -> None:
    one = REPORTED[name]
    assert one.new_page() == (REPOSITORY / one.page).read_text(encoding="utf-8")


def test_every_generated_table_has_a_study() -> None:
    filled: dict[str, set[str]] = defaultdict(set)
    for one in REPORTED.values():
        assert one.report is not None
        filled[one.page] |= set(one.report())
    for page in sorted((REPOSITORY / "docs").rglob("*.md")):
        marked = set(tables_of(page.read_text(encoding="utf-8")))
        assert marked == filled[page.relative_to(REPOSITORY).as_posix()], page.name


@pytest.mark.parametrize("name", [path.name for path in sorted(RESULTS.glob("*.jsonl"))])
def test_methods_do_not_contradict_each_other(name: str) -> None:
    results = read_results(RESULTS / name)
    assert results.rows
    assert contradictions(results.rows) == ()


def test_unknown_tables_are_refused() -> None:
    with pytest.raises(InputError, match="'no such'"):
        with_tables("<!-- begin some -->\nold\n<!-- end -->\n", {"no such": "new"})


def test_every_suite_is_described() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert all(f"| `{name}` |" in text for name in SUITES)


def test_every_group_of_questions_was_measured() -> None:
    measured = {row["group"] for row in read_rows(RESULTS / "exact_speed.csv")}
    assert measured == set(read_json(RESULTS / "exact_speed.json"))
    assert measured == {group.name for group in speed.groups()}


def test_an_interrupted_run_keeps_finished_layouts_and_goes_on_with_the_others(
    monkeypatch, tmp_path
):
    begun, version = [], "1"
    system = SimpleNamespace(servers=3, package="p", version=lambda: version)

    def measured(layout, count, part=""):
        assert count == 5
        begun.append(part or layout.name)
        for client in range(3):
            row = {"part": part or layout.part, "layout": layout.name, "operation": "write"}
            yield {**row, "client": client, **dict.fromkeys(("measured", "low", "high", "n"), 1)}
            if len(begun) == 3:
                raise KeyboardInterrupt

    bench = SimpleNamespace(measured=measured, others=lambda one: measured(one, 5, "loss"))
    monkeypatch.setattr(study, "SYSTEMS", {"redis": system})
    monkeypatch.setattr(study, "running", lambda _: nullcontext(bench))
    monkeypatch.setattr(study, "system_rows", lambda: [SimpleNamespace(system="redis")])

    def run(*more):
        words = ["run", "commit_paths", "--system", "redis", "--count", "5", "--results"]
        return main([*words, str(tmp_path), *more])

    def kept():
        return [row["layout"] for row in read_measured(tmp_path)["redis"]["rows"]]

    every = [one.name for one in layouts(3) for _ in range(3)]
    assert run() == INTERRUPTED
    assert kept() == every[:7]
    assert run() == 0
    assert begun == [*every[:9:3], *every[6::3], "loss"]
    assert sorted(kept()) == sorted([*every, *every[:3]])
    monkeypatch.setattr(study, "running", Mock(side_effect=[nullcontext(bench)]))
    assert run() == 0  # nothing is left to measure: no server starts
    version = "2"  # its name is not given to the rows of the older one
    monkeypatch.setattr(study, "running", Mock(side_effect=UnsupportedError("no network")))
    assert run("--layout", every[0]) == 1
    assert len(kept()) == len(every) + 3  # until there is something to measure it with
    monkeypatch.setattr(study, "running", lambda _: nullcontext(bench))
    assert run("--layout", every[0]) == 0
    assert kept() == every[:3]
    assert read_measured(tmp_path)["redis"]["version"] == "2"
    version = "3"
    begun[:] = ["a", "b"]  # stops in the first layout
    assert run("--again") == INTERRUPTED
    assert len(kept()) == 1
    assert read_measured(tmp_path)["redis"]["version"] == "3"


@pytest.mark.parametrize("name", ["redis", "postgresql", "rabbitmq"])
def test_a_system_that_is_not_installed_names_its_package(name, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setattr("pathlib.Path.glob", lambda *_: iter(()))
    assert main(["run", "commit_paths", "--system", name, "--results", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert f"{name}: not measured" in said
    assert study.SYSTEMS[name].package in said
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("network", "clients"), [("modelled", 27), ("world27", 60)])
def test_sigma_concentrates_the_demand_and_changes_nothing_else(network, clients):
    spread, narrow = (world(network, "cache", 3, sigma=sigma) for sigma in (SIGMA, 3.0))
    assert spread.clients == narrow.clients
    assert len(spread.clients) == clients
    assert len(spread.sites) == 27
    np.testing.assert_array_equal(spread.client_rtt, narrow.client_rtt)
    by_client = [np.sort(x.counts.sum(axis=(0, 2)))[::-1] for x in (spread, narrow)]
    top = [weights[:3].sum() / weights.sum() for weights in by_client]
    assert top[1] > top[0] + 0.2
    default = world(network, "cache", 3)
    np.testing.assert_array_equal(default.counts, spread.counts)


def test_summaries_keep_clients_and_sigma_apart():
    rows = [
        {"network": network, "sigma": sigma, "diversity": "free", "replicas": 4,
         "method": method, "objective": objective, "optimum": 100.0}
        for network, sigma, objective in (
            ("modelled", 1.2, 150.0),
            ("modelled", 3.0, 120.0),
            ("azure-2025", 3.0, 140.0),
            ("world27", 1.2, 110.0),
        )
        for method in ("kq", "qk", "best-of", "local-search", "exact")
    ]  # fmt: skip
    lines = by_demand(pd.DataFrame(rows), summary_11)
    assert [(line["clients"], line["sigma"], line["kq"]) for line in lines] == [
        ("sites", 1.2, 50.0),
        ("sites", 3.0, 30.0),
        ("cities", 1.2, 10.0),
    ]


def test_demand_halves_from_client_to_client():
    counts = concentrated(load("world27"), 0.5, np.random.default_rng(0)).counts[0]
    weights = np.sort(counts.sum(axis=1))[::-1]
    np.testing.assert_allclose(weights[1:8] / weights[:7], 0.5, rtol=1e-4)
    assert counts[:, 1:].sum() == 0


def test_gains_follow_from_the_means(monkeypatch):
    monkeypatch.setattr("benchmarks.paper_tier3.DATA_SETS", ("world27",))
    monkeypatch.setattr("benchmarks.paper_tier3.STEPS", 3)
    for line in gains(1):
        mean, gain = line["mean ms"], line["gain %"]
        assert line["proven"]
        sizes = list(mean)
        assert [int(size) - line["voters"] for size in sizes] == [0, 1, 2]
        for before, size in itertools.pairwise(sizes):
            assert gain[size] == pytest.approx(100 * (1 - mean[size] / mean[before]), abs=0.06)


@pytest.mark.parametrize("network", ["modelled", "world27"])
@pytest.mark.parametrize("voters", [3, 5])
def test_kept_diversity_is_that_of_a_spread_deployment(network, voters):
    instance = world(network, "cache", 1)
    assert set(instance.domains) == {"country", "continent"}
    problem = kept(Problem(instance, replicas=voters + 2, voters=voters))
    plan = run(load_method("exact"), problem, Options())
    free = run(load_method("exact"), problem.replace(diversity=()), Options())
    assert plan.objective >= free.objective
    today = run(
        load_method("max-diversity"), Problem(instance, replicas=voters, voters=voters), Options()
    )
    for level in ("country", "continent"):
        label = dict(zip(instance.sites, instance.labels(level), strict=True))
        fullest = [
            max(Counter(label[site] for site in one.voters).values()) for one in (plan, today)
        ]
        assert fullest[0] <= fullest[1] < voters


def test_results_hold_what_they_must():
    """Finite numbers, bounds below what was found, and the best never above the search."""

    def refuse(constant):
        raise AssertionError(constant)

    results = json.loads(STUDY.path.read_text(encoding="utf-8"), parse_constant=refuse)
    for row in results["plans"]:
        assert row["bound_ms"] <= row["tail_plan_ms"] <= row["mean_plan_ms"]
        assert row["mean_plan_mean_ms"] <= row["tail_plan_mean_ms"] + 0.001
    for row in results["leaders"]:
        assert row["tail_leader_ms"] <= row["mean_leader_ms"] < math.inf
        assert row["mean_leader_mean_ms"] <= row["tail_leader_mean_ms"] + 0.001
    assert all(row["proven"] for row in results["proofs"])
