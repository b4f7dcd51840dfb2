"""Verbs come from the entry-point group ``placement.verbs``; a call loads its own verb only."""

from __future__ import annotations

import subprocess
import sys

import pytest

from placement.cli import main
from placement.cli.dispatch import VERBS
from placement.support.entry_points import EntryPoint

PLUG_IN = """
import placement.cli.dispatch as exits

def add_parser(verbs):
    parser = verbs.add_parser("greet", help="greet the sites")
    parser.add_argument("name")
    parser.set_defaults(run=run)

def run(args):
    print("hello", args.name)
    return exits.FOUND
"""


@pytest.fixture
def plug_in(tmp_path, monkeypatch):
    """Another distribution's verbs: one that works, one whose module is missing."""
    (tmp_path / "greeting_verb.py").write_text(PLUG_IN, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = dict(VERBS.entries)
    for name, value in (("greet", "greeting_verb"), ("broken", "no_such_module_anywhere")):
        found[name] = EntryPoint(name, value)
    monkeypatch.setattr(VERBS, "entries", found)


def test_a_plug_in_brings_a_verb(plug_in, capsys):
    assert main(["greet", "Tokyo"]) == 0
    assert capsys.readouterr().out == "hello Tokyo\n"


def test_a_broken_plug_in_does_not_take_the_help_with_it(plug_in, capsys):
    assert main(["--help"]) == 0
    assert "more: broken, greet" in capsys.readouterr().out
    assert main(["broken"]) == 1
    assert "verb 'broken' (no_such_module_anywhere) cannot be imported" in capsys.readouterr().err


def test_every_registered_verb_offers_parser_and_run():
    for name in VERBS.entries:
        assert callable(VERBS.load(name).run)


def test_a_call_loads_its_own_verb_only():
    script = (
        "import sys; from placement.cli import main; assert main(['solve', '--help']) == 0;"
        "other = [name for name in sys.modules if name.endswith('.verb') or '.cli.verbs.' in name];"
        "assert other == ['placement.cli.verbs.solve'], other"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
