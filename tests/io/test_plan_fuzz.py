"""Damaged and forged plan files: the same verdict or an error, and "proved" only for what is true.

Files of real plans of every kind are changed by key and by byte. Every command that reads a plan
then ends with an exit code of its own, never with a traceback, in bounded time.
"""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from placement import InputError, Plan, Status
from placement.cli import main
from placement.errors import PlacementError
from placement.io import load_plan
from placement.io.formats.document import Document, encode_json
from placement.io.instance_folder import instance_from_document
from placement.io.leader_plan_document import plan_document
from placement.testing import optimum
from tests.effort import examples
from tests.io.plans import plans

_DIGITS = "1" * 5000
_SECONDS = 20.0  # of one file, on a busy machine; honest ones take milliseconds

HOSTILE: tuple[object, ...] = (
    None, True, False, 0, 1, -1, 3, 10**6, 10**18, 10**300, 0.5, 1e-320, 1e308, -1e308, "", "inf",
    "nan", "exact", "optimal", "feasible", "infeasible", "violating", "Mars", "site-1", "a\0b",
    "\u202e", "\x1b[31m", "9" * 40, [], [[]], {}, {"$float": "nan"}, {"$float": "inf"},
    {"$float": "zzz"}, {"leader": 1}, ["site-0", "site-0"], [["enumerate"]], [["close", []]],
    {"least": 1, "most": 10**9},
)  # fmt: skip

TOKENS = (
    b"", b"NaN", b"-Infinity", b"1e999", _DIGITS.encode(), b"-" + _DIGITS.encode(), b"[" * 600,
    b"[" * 600 + b"]" * 600, b'{"a":' * 300, b"\\ud800", b"\xff", b"\x00", b"0", b"e9", b",", b'"',
    b"}", b'"x": 1, "x": 2',
)  # fmt: skip


@cache
def _written() -> dict[str, tuple[dict[str, Any], Plan]]:
    return {kind: (plan_document(plan, embed=True), plan) for kind, plan in plans().items()}


@st.composite
def _place(draw: st.DrawFn, document: dict[str, Any]) -> tuple[Any, Any]:
    """A container of the document and a key in it; each level is drawn alike, so none drowns."""
    inner: Any = document
    while True:
        key = draw(st.sampled_from(list(inner) if isinstance(inner, dict) else range(len(inner))))
        below = inner[key]
        if not isinstance(below, (dict, list)) or not below or draw(st.integers(0, 3)) == 0:
            return inner, key
        inner = below


def _change(draw: st.DrawFn, document: dict[str, Any]) -> None:
    """Change one value, key or order in place."""
    inner, key = draw(_place(document))
    value = inner[key]
    kind = draw(st.sampled_from(["replace", "delete", "nudge", "copy", "shuffle", "add"]))
    if kind == "nudge" and isinstance(value, (int, float)) and not isinstance(value, bool):
        factor = draw(st.sampled_from([-1, 0.5, 1 + 1e-8, 1 - 1e-8, 2, 1e9]))
        inner[key] = type(value)(value * factor)
    elif kind == "delete":
        del inner[key]
    elif kind == "copy":
        other, at = draw(_place(document))
        inner[key] = copy.deepcopy(other[at])
    elif kind == "shuffle" and isinstance(value, list):
        inner[key] = draw(st.permutations(value)) if len(value) < 30 else value[::-1]
    elif kind == "add" and isinstance(value, list):
        inner[key] = [*value, *value[:1], draw(st.sampled_from(HOSTILE))]
    elif kind == "add" and isinstance(value, dict):
        inner[key] = {**value, draw(st.sampled_from(["x", "", "$float", "leader"])): 1}
    else:
        inner[key] = copy.deepcopy(draw(st.sampled_from(HOSTILE)))


def _resealed(document: dict[str, Any]) -> None:
    """Write the fingerprints of what the instance has become, as whoever forges it would."""
    about = document.get("instance")
    content = about.get("content") if isinstance(about, dict) else None
    if isinstance(about, dict) and isinstance(content, dict):
        bare = {key: value for key, value in content.items() if key != "fingerprint"}
        try:
            seal = instance_from_document(Document("", "", bare)).fingerprint
        except InputError:
            return
        content["fingerprint"] = about["fingerprint"] = seal


@st.composite
def _damaged(draw: st.DrawFn) -> tuple[str, bytes]:
    """The kind of a plan, and its file with a few changes."""
    kind = draw(st.sampled_from(sorted(plans())))
    document = copy.deepcopy(_written()[kind][0])
    if draw(st.integers(0, 2)):
        for _ in range(draw(st.integers(1, 3))):
            _change(draw, document)
        if draw(st.booleans()):
            _resealed(document)
        return kind, json.dumps(document).encode()
    data = encode_json(document)
    for _ in range(draw(st.integers(1, 2))):
        at = draw(st.integers(0, len(data)))
        end = min(len(data), at + draw(st.sampled_from([0, 1, 2, 10, 1000, 10**6])))
        data = data[:at] + draw(st.sampled_from(TOKENS)) + data[end:]
    return kind, data


def _is_true(plan: Plan) -> bool:
    """Return whether the claims of a plan hold, by enumeration."""
    best = optimum(plan.problem)
    if not plan.found:
        return best == float("inf")
    return plan.bound <= best * (1 + 1e-9) and (
        plan.status is not Status.OPTIMAL or plan.objective <= best * (1 + 1e-8)
    )


def _examine(folder: Path, capsys: pytest.CaptureFixture[str], kind: str, data: bytes) -> None:
    path, page = folder / "p.json", folder / "p.html"
    path.write_bytes(data)
    before = _written()[kind][1]
    began = time.perf_counter()
    codes = {
        "check": main(["check", str(path), "--work", "1000000"]),
        "show": main(["show", str(path)]),
    }
    told = capsys.readouterr().out
    codes["report"] = main(["report", str(path), "-o", str(page), "--force"])
    told += capsys.readouterr().out
    assert time.perf_counter() - began < _SECONDS
    try:
        plan = load_plan(path)
    except PlacementError:
        assert codes["check"] == 1
        assert codes["report"] == (1 if data else 0)  # an empty file is a result without rows
        return
    assert plan.claim or plan.bound == float("-inf")
    assert "optimal, proven" not in told
    assert "infeasible, proven" not in told
    if codes["check"] == 0:
        assert before.certificate is not None or before.status is Status.INFEASIBLE
        assert _is_true(plan)


def _fuzz(count: int, *, fresh: bool) -> Callable[..., None]:
    @settings(
        max_examples=count,
        derandomize=not fresh,
        suppress_health_check=list(HealthCheck),
        deadline=None,
    )
    @given(damaged=_damaged())
    def test(
        tmp_path_factory: pytest.TempPathFactory,
        capsys: pytest.CaptureFixture[str],
        damaged: tuple[str, bytes],
    ) -> None:
        _examine(tmp_path_factory.getbasetemp(), capsys, *damaged)

    return test


test_no_damage_proves_anything = _fuzz(examples(200), fresh=False)
test_no_damage_proves_anything_in_thousands = pytest.mark.slow(_fuzz(examples(500), fresh=True))


@pytest.mark.parametrize("kind", sorted(plans()))
def test_the_files_themselves_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    """Without damage every kind is read, so that the fuzz starts from files that hold."""
    document, plan = _written()[kind]
    (tmp_path / "p.json").write_bytes(encode_json(document))
    assert load_plan(tmp_path / "p.json").status is plan.status
    proved = main(["check", str(tmp_path / "p.json")]) == 0
    assert proved == (plan.certified or kind == "none")
    _examine(tmp_path, capsys, kind, encode_json(document))
