"""The structure of the packages: arrows go one way, no circles, no name twice.

A module imports only from packages of its own rank or below. Imports inside functions count, those
under ``if TYPE_CHECKING`` do not.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TREES = ("placement", "formulations", "heuristics", "benchmarks")

RANKS: dict[str, dict[str, int]] = {
    "placement": {
        "placement.errors": 0,
        "placement.question": 0,
        "placement.support": 0,
        "placement.io.formats": 0,
        "placement.languages": 0,
        "placement.report.charts.markup": 0,
        "placement.report.notebook": 0,
        "placement.text.text_tables": 0,
        "placement.datasets.cloud_regions": 0,
        "placement.model": 1,
        "placement.online": 1,
        "placement.datasets.distance_rtt": 1,
        "placement.evaluation": 2,
        "placement.methods.options": 2,
        "placement.workloads": 2,
        "placement.quorumstore": 2,
        "placement.measures.measure": 2,
        "placement.measures.text": 2,
        "placement.problem": 3,
        "placement.datasets": 3,
        "placement.feasibility": 4,
        "placement.text": 4,
        "placement.plan": 5,
        "placement.fleet": 5,
        "placement.fleet.fleet_tables": 8,
        "placement.cli.verbs.fleet": 12,
        "placement.methods": 6,
        "placement.analysis": 7,
        "placement.contingency": 7,
        "placement.measures": 7,
        "placement.proof": 7,
        "placement.tail": 7,
        "placement.testing": 7,
        "placement.io": 8,
        "placement.prometheus": 9,
        "placement.report": 9,
        "placement.api": 9,
        "placement.cli": 10,
        "placement.__main__": 10,
        "placement.overtime.decayed_counts": 2,
        "placement.overtime.moves": 9,
        "placement.overtime": 11,
        "placement.databases": 9,
        "placement.databases.verbs": 11,
        "placement.online.verbs": 11,
        "placement.contingency.verb": 11,
        "placement.cli.verbs.quorum": 11,
        "placement.explore": 12,
        "placement.testing.databases": 12,
    },
    "formulations": {
        "formulations.solvers": 0,
        "formulations.enumeration": 1,
        "formulations.quorumstore": 1,
        "formulations.online": 1,
        "formulations.exact": 2,
        "formulations.milp": 2,
        "formulations.milp.method": 3,
        "formulations.overtime": 2,
        "formulations.linear": 3,
        "formulations.linear.leader_program": 1,
        "formulations.tail": 3,
        "formulations.waits": 3,
        "formulations.minimal_conflict": 3,
        "formulations.fleet": 3,
    },
    "heuristics": {"heuristics": 0, "heuristics.tail": 1},
    "benchmarks": {
        "benchmarks.harness": 0,
        "benchmarks.peers": 0,
        "benchmarks": 1,
        "benchmarks.__main__": 2,
    },
}
"""The rank of each package; the longest prefix of a module's name decides."""

MAY_IMPORT = {
    "placement": {"placement"},
    "formulations": {"placement", "formulations"},
    "heuristics": {"placement", "heuristics"},
    "benchmarks": set(TREES),
}


def _name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {
    _name(path): path
    for tree in TREES
    for path in sorted((ROOT / tree).rglob("*.py"))
    if "csrc" not in path.parts
}


def _read(path: Path) -> tuple[list[tuple[str, bool]], list[str]]:
    """Return (module of the four trees, whether it is imported when the file is), and the classes.

    The tree of a file is not kept: those of all files would slow down every later collection.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found: list[tuple[str, bool]] = []

    def targets(node: ast.Import | ast.ImportFrom) -> list[str]:
        if isinstance(node, ast.Import):
            return [alias.name for alias in node.names]
        assert node.level == 0, f"{path}: a relative import"
        base = node.module or ""
        return [
            f"{base}.{alias.name}" if f"{base}.{alias.name}" in MODULES else base
            for alias in node.names
        ]

    def walk(node: ast.AST, at_import: bool) -> None:
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            for child in node.orelse:
                walk(child, at_import)
            return
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.extend((name, at_import) for name in targets(node) if name in MODULES)
        inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):  # no expressions
                walk(child, at_import and not inside)

    walk(tree, True)
    return found, [node.name for node in tree.body if isinstance(node, ast.ClassDef)]


@cache
def _files() -> dict[str, tuple[list[tuple[str, bool]], list[str]]]:
    return {name: _read(path) for name, path in MODULES.items()}


def _rank(name: str) -> int:
    ranks = RANKS[name.partition(".")[0]]
    best = max((p for p in ranks if f"{name}.".startswith(f"{p}.")), key=len, default=None)
    return -1 if best is None else ranks[best]


@pytest.mark.parametrize("tree", TREES)
def test_arrows_go_one_way(tree: str) -> None:
    upward = [
        f"{name} -> {target}"
        for name, (targets, _) in _files().items()
        if name.partition(".")[0] == tree
        for target, _ in targets
        if target.partition(".")[0] not in MAY_IMPORT[tree]
        or (target.partition(".")[0] == tree and 0 <= _rank(name) < _rank(target))
    ]
    assert not upward


def test_no_circle_of_imports() -> None:
    edges = {
        name: [t for t, now in found if now and t != name] for name, (found, _) in _files().items()
    }
    state: dict[str, int] = {}
    circles: list[str] = []

    def visit(name: str, path: tuple[str, ...]) -> None:
        state[name] = 1
        for target in edges[name]:
            if state.get(target) == 1:
                circles.append(" -> ".join((*path[path.index(target) :], target)))
            elif target not in state:
                visit(target, (*path, target))
        state[name] = 2

    for name in edges:
        if name not in state:
            visit(name, (name,))
    assert not circles


def test_no_class_name_stands_for_two_things() -> None:
    """Classes at the top of a module, with those of the benchmarks and the private ones."""
    homes: dict[str, list[str]] = defaultdict(list)
    for name, (_, classes) in _files().items():
        for each in classes:
            homes[each.lstrip("_")].append(name)
    assert not {name: modules for name, modules in homes.items() if len(modules) > 1}
