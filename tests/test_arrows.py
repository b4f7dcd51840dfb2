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

NAMES = {
    "placement": {
        0: "errors question support io.formats languages report.charts.markup "
           "report.notebook text.text_tables datasets.cloud_regions",
        1: "model online datasets.distance_rtt",
        2: "evaluation methods.options workloads quorumstore measures.measure measures.text "
           "overtime.decayed_counts",
        3: "problem datasets",
        4: "feasibility text",
        5: "plan fleet",
        6: "methods",
        7: "analysis contingency measures proof tail testing",
        8: "fleet.fleet_tables io",
        9: "prometheus report api overtime.moves databases",
        10: "cli __main__",
        11: "overtime databases.verbs online.verbs contingency.verb cli.verbs.quorum",
        12: "cli.verbs.fleet explore testing.databases",
    },
    "formulations": {
        0: "solvers",
        1: "enumeration quorumstore online linear.leader_program",
        2: "exact milp overtime",
        3: "milp.method linear tail waits minimal_conflict fleet",
    },
    "heuristics": {
        0: ".",
        1: "tail",
    },
    "benchmarks": {
        0: "harness peers",
        1: ".",
        2: "__main__",
    },
}  # fmt: skip
"""The packages of each rank, without the name of the tree; "." is the tree itself."""

RANKS = {
    tree: {f"{tree}.{name}".rstrip("."): rank for rank in ranks for name in ranks[rank].split()}
    for tree, ranks in NAMES.items()
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
