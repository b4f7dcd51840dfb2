"""Every study is reached by `python -m benchmarks run`, and its files keep their form."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.harness import machine
from benchmarks.harness.result_files import RESULTS, existing_rows, save_csv, save_json
from benchmarks.harness.study import MODULES, load_study, summary
from benchmarks.harness.suites import SUITES
from placement.errors import InputError

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
    alone = {module for module in MODULES.values() if ":" not in module}
    assert _modules_with("\nSTUDY = ") == alone
    assert _modules_with("argparse.ArgumentParser(\n") == {"benchmarks.__main__"}
    assert _modules_with('\nif __name__ == "__main__"') == {
        "benchmarks.__main__",
        "benchmarks.exact.scale_cell",
        "benchmarks.harness.cell_process",
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
    """A study is imported when it is run; the list reads the first line of each file."""
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
    """The one writer of tables gives every committed table byte for byte."""
    data = path.read_bytes()
    heads, *rows = csv.reader(data.decode().splitlines())
    save_csv(tmp_path / "new" / path.name, heads, rows)
    assert (tmp_path / "new" / path.name).read_bytes() == data


@pytest.mark.parametrize("name", MODULES)
def test_documents_are_written_as_they_are_committed(name: str, tmp_path: Path) -> None:
    """The one writer of documents gives every committed document byte for byte."""
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
