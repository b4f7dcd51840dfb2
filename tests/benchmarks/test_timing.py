"""The parts of the benchmarks that every figure depends on."""

from __future__ import annotations

import json
import re

from benchmarks.harness import machine


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
