"""The answers of this checkout, by file and name, and their comparison with those that stand."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import functools
import hashlib
import io
import itertools
import json
import math
import re
import shlex
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.exact import speed
from benchmarks.harness.results import RESULTS
from benchmarks.instances import library
from benchmarks.instances.question import LibraryQuestion, digest
from placement.cli import main
from placement.methods.registry import solve

__all__ = ["FILES", "Answers", "Line", "ask", "differences", "known", "write"]

HERE = Path(__file__).parent
SAME = 1e-9

Answers = dict[str, Callable[[], Any]]
"""Name -> function that computes the answer."""


@dataclass(frozen=True)
class Line:
    """An answer, and the CPU seconds that it took."""

    answer: Any
    seconds: float


def known(kind: str, text: str | None = None) -> dict[str, Line]:
    text = (HERE / f"{kind}.jsonl").read_text(encoding="utf-8") if text is None else text
    lines = (json.loads(line) for line in text.splitlines())
    return {line["name"]: Line(line["answer"], line["seconds"]) for line in lines}


def write(kind: str, lines: Mapping[str, Line]) -> None:
    rows = [{"name": name, **dataclasses.asdict(line)} for name, line in sorted(lines.items())]
    text = "".join(
        json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows
    )
    (HERE / f"{kind}.jsonl").write_text(text, encoding="utf-8")


def ask(answer: Callable[[], Any]) -> Line:
    began = time.process_time()
    found = json.loads(json.dumps(answer()))
    return Line(found, round(time.process_time() - began, 2))


def differences(before: Any, now: Any, where: str = "") -> Iterator[str]:
    """Yield the places where two answers differ: numbers by more than 1e-9 of the larger one."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in sorted(before.keys() | now.keys()):
            if key not in before or key not in now:
                yield f"{where}/{key}: {'new' if key in now else 'missing'}"
            else:
                yield from differences(before[key], now[key], f"{where}/{key}")
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for i, (one, other) in enumerate(zip(before, now, strict=True)):
            yield from differences(one, other, f"{where}/{i}")
    elif _is_number(before) and _is_number(now):
        if not math.isclose(before, now, rel_tol=SAME, abs_tol=1e-12):
            yield f"{where}: {before!r} -> {now!r}"
    elif before != now:
        yield f"{where}: {str(before)[:200]} -> {str(now)[:200]}"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# ------------------------------------------------------------------ questions of the library


def _library() -> Answers:
    return {e.question.name: functools.partial(_solved, e.question) for e in library.read()}


def _solved(question: LibraryQuestion) -> Any:
    problem = question.problem()
    plan = solve(problem, "exact")
    found = plan.configuration
    return {
        "data": digest(problem),
        "status": str(plan.status),
        "value": found and float(plan.objective),
        "bound": float(plan.bound) if math.isfinite(plan.bound) else None,
        "sites": found and [found.leader, sorted(found.voters), sorted(found.replicas)],
    }


# ------------------------------------------------------------------ nodes of the exact search

GROUPS = {"small": None, "medium": None, "100 x 200": None, "p-median drawn": 15}
"""Groups of ``exact.speed``, and how many of their questions; None: all."""


def _nodes() -> Answers:
    answers: Answers = {}
    for group in speed.groups():
        if group.name in GROUPS:
            with contextlib.redirect_stderr(io.StringIO()):  # says which networks are not here
                for name, question in itertools.islice(group.questions(), GROUPS[group.name]):
                    answers[name] = functools.partial(_counted, question)
    return answers


def _counted(question: speed.Ask) -> Any:
    return dict(zip(("status", "gap", "nodes"), question(math.inf, None)[:3], strict=True))


# ------------------------------------------------------------------ documents of commands

TIMES = re.compile(r"seconds|wall|cpu|time_ms|elapsed|per_second|_per_s$|memory|_mb$|speedup", re.I)
NOT_ANSWERS = {
    *("certificate", "proofs", "stats", "version", "versions", "commit", "date", "created"),
    *("python", "machine", "kernel", "instance", "problem", "question", "provenance"),
    "fingerprint",
}
"""Keys of documents that do not belong to the answer: how it was found, and the question."""


def _cleaned(value: Any, folder: str) -> Any:
    """Return a document without times, versions, counters and proofs, and without the folder."""
    if isinstance(value, dict):
        return {
            key: _cleaned(inner, folder)
            for key, inner in value.items()
            if key not in NOT_ANSWERS and not TIMES.search(key)
        }
    if isinstance(value, list):
        return [_cleaned(inner, folder) for inner in value]
    if isinstance(value, str):
        return re.sub(r"\b[\d.]+ m?s\b", "TIME", value.replace(folder, "FOLDER"))
    return value


class _Commands:
    """Run commands in this process, in one folder, each once and after those whose files it reads.

    ``commands.txt`` has a command on each line, behind its name; ``inputs.json`` has the files that
    are there at the start.
    """

    def __init__(self) -> None:
        lines = (HERE / "commands.txt").read_text(encoding="utf-8").splitlines()
        self.arguments = {
            name: shlex.split(text) for name, _, text in (line.partition(": ") for line in lines)
        }
        self._writers = {a[a.index("-o") + 1]: n for n, a in self.arguments.items() if "-o" in a}
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._done: dict[str, Any] = {}

    def answer(self, name: str) -> Any:
        """Return exit code and document of a command; what it reads is made first."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory()
            inputs = json.loads((HERE / "inputs.json").read_text(encoding="utf-8"))
            for file, text in inputs.items():
                path = Path(self._folder.name, file)
                path.parent.mkdir(exist_ok=True)
                path.write_text(text, encoding="utf-8")
        for argument in self.arguments[name]:
            if self._writers.get(argument, name) != name:
                self.answer(self._writers[argument])
        if name not in self._done:
            self._done[name] = self._run(self.arguments[name], self._folder.name)
        return self._done[name]

    def _run(self, arguments: list[str], folder: str) -> Any:
        out, err = io.StringIO(), io.StringIO()
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            contextlib.chdir(folder),
        ):
            code = main(arguments)
        if code not in (0, 2):
            return {"code": code, "error": err.getvalue().replace(folder, "FOLDER")}
        documents = [json.loads(line) for line in _lines(out.getvalue())]
        return {"code": code, "documents": [_cleaned(d, folder) for d in documents]}


def _lines(text: str) -> list[str]:
    """Return the documents of a text: the whole, or one of each line."""
    return [text] if text.startswith(("{\n", "[\n")) else text.splitlines()


def _verbs() -> Answers:
    commands = _Commands()
    return {name: functools.partial(commands.answer, name) for name in commands.arguments}


# ------------------------------------------------------------------ committed results

PAPERS = (
    *("paper_tier3*", "replay.*", "contingency_*", "tail.*", "quorumstore.*", "online_*"),
    *("stability*", "rtt_model.*", "leader_shares.*", "fleet.json", "foundation.*"),
    *("exact_rules.*", "leader_waits.*", "set_waits.*"),
)


def _tables() -> Answers:
    paths = sorted({path for pattern in PAPERS for path in RESULTS.glob(pattern)})
    return {path.name: functools.partial(_digest, path) for path in paths}


def _digest(path: Path) -> Any:
    """Return for each column number of cells, weighted sum of numbers, and hash of other cells.

    A column of a JSON document is a path without the indices of lists. The weight of a number
    depends on its place, so that an exchange of two rows is seen.
    """
    columns: defaultdict[str, list[Any]] = defaultdict(list)
    if path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                for key, cell in row.items():
                    columns[key].append(_number(cell))
    else:
        _flatten(json.loads(path.read_text(encoding="utf-8")), "", columns)
    return {
        name: _summary(cells)
        for name, cells in columns.items()
        if not TIMES.search(name) and not NOT_ANSWERS & set(name.split("/"))
    }


def _flatten(value: Any, where: str, columns: defaultdict[str, list[Any]]) -> None:
    if isinstance(value, dict):
        for key, inner in value.items():
            _flatten(inner, f"{where}/{key}".lstrip("/"), columns)
    elif isinstance(value, list):
        for inner in value:
            _flatten(inner, where, columns)
    else:
        columns[where].append(value)


def _number(cell: str) -> Any:
    try:
        return float(cell)
    except ValueError:
        return cell


def _summary(cells: list[Any]) -> list[Any]:
    numbers = [float(c) if _is_number(c) and math.isfinite(c) else None for c in cells]
    sums = [x * (1 + i % 997 / 997) for i, x in enumerate(numbers) if x is not None]
    others = [str(c) for c, x in zip(cells, numbers, strict=True) if x is None]
    text = hashlib.sha256("\n".join(others).encode()).hexdigest()[:12] if others else ""
    return [len(cells), math.fsum(sums), text]


FILES: dict[str, Callable[[], Answers]] = {
    "library": _library,
    "nodes": _nodes,
    "verbs": _verbs,
    "tables": _tables,
}
"""File of answers -> function that returns how each is computed."""
