"""The table of rules and the calls that add findings fit each other."""

import ast
import csv
import string
from pathlib import Path

import placement.databases

ROOM = Path(placement.databases.__file__).parent
SYSTEM_OF = {"findings": "any"}
NAMES = {"GOAL_OPEN": "survival-goal-not-known"}


def texts(node: ast.expr) -> list[str]:
    """The rules that an argument may name."""
    if isinstance(node, ast.IfExp):
        return [*texts(node.body), *texts(node.orelse)]
    return [NAMES[node.id]] if isinstance(node, ast.Name) else [ast.literal_eval(node)]


def test_every_finding_has_a_rule_with_its_facts_and_every_rule_a_finding():
    rules: dict[tuple[str, str], set[str]] = {}
    for row in csv.DictReader((ROOM / "rules.csv").open(encoding="utf-8", newline="")):
        assert row["severity"] in {"error", "warning", "note"}, row
        assert (row["system"], row["rule"]) not in rules
        parts = string.Formatter().parse(row["evidence"] + row["remedy"])
        facts = {name.partition(".")[0].partition("[")[0] for _, name, _, _ in parts if name}
        rules[row["system"], row["rule"]] = facts - {"subject"}
    added = set()
    for path in {*ROOM.rglob("*.py")} - {*ROOM.rglob("labels.py")}:  # which hands a rule on
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            if node.func.attr == "add" and ast.unparse(node.func.value) in {"found", "findings"}:
                for rule in texts(node.args[0]):
                    key = SYSTEM_OF.get(path.stem, path.stem), rule
                    assert {one.arg for one in node.keywords} == rules[key], (path.name, rule)
                    added.add(key)
    assert {key for key in rules if key[0] != "labels"} == added
