"""Texts of fixed deployments, letter by letter.

After a change that is meant, write them anew: ``python -m tests.databases.test_golden``.
"""

from pathlib import Path

import pytest

from placement.databases import available, load_system
from placement.databases.system import read_deployment, write_deployment
from placement.errors import UnsupportedError
from tests.databases.worlds import AFTER, BEFORE, CATALOGUE, QUORUMS, localities

FOLDER = Path(__file__).parent / "golden"


def text_of(name):
    """Return the text of a fresh deployment, and of the steps to it, with the notes."""
    system = load_system(name)
    request = system.request(localities(system), "app")
    try:
        fresh = write_deployment(system, AFTER, request)
        first = write_deployment(system, BEFORE, request)
    except UnsupportedError:
        other = CATALOGUE if name == "spanner" else QUORUMS
        fresh = write_deployment(system, other, request)
        return fresh.text + "\n".join(["", *fresh.notes, ""])
    present = read_deployment(system, (("first", first.text),), request).deployment
    moved = write_deployment(system, AFTER, request, present)
    return "\n".join([fresh.text, *fresh.notes, "", "=" * 80, "", moved.text, *moved.notes, ""])


@pytest.mark.parametrize("name", available())
def test_the_text_is_the_golden_one(name):
    assert text_of(name) == (FOLDER / f"{name}.txt").read_text(encoding="utf-8")


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for each in available():
        (FOLDER / f"{each}.txt").write_text(text_of(each), encoding="utf-8")
