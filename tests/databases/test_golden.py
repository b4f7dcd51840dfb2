"""Texts of fixed deployments, letter by letter, and the conformance suite of every system.

After a change that is meant, write them anew: ``python -m tests.databases.test_golden``.
"""

from pathlib import Path

import pytest

from placement.databases import Deployment, available, load_system
from placement.databases.system import read_deployment, write_deployment
from placement.errors import UnsupportedError
from placement.testing.databases import DATABASE_CHECKS
from tests.databases.worlds import AFTER, BEFORE, CATALOGUE, QUORUMS, SITES, localities
from tests.effort import examples

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


@pytest.mark.parametrize("count", [examples(100, 20), pytest.param(4000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", available())
@pytest.mark.parametrize("check", DATABASE_CHECKS, ids=lambda check: check.__name__)
def test_conformance(name, check, count):
    check(load_system(name), seed=count > 40, count=count)


@pytest.mark.parametrize("name", available())
def test_every_system_refuses_what_it_cannot_say(name):
    system = load_system(name)
    lead = {"leaders": SITES[:1]}
    three = dict.fromkeys(SITES[:3], 1)
    asked = [
        ({"commits"}, Deployment.of("x", three, read=2, commit=2), "without one"),
        ({"commits"}, Deployment.of("x", three, commit=3, **lead), "majority"),
        ({"servers"}, Deployment.of("x", {SITES[0]: 3}, **lead), "row for each"),
        ({}, Deployment.of("x", three, free_voters=1, **lead), "no place"),
        ({"least"}, Deployment.of("x", three, least=1, **lead), "fewer votes"),
        ({"elect"}, Deployment.of("x", three, elect=3, **lead), "3 votes"),
        ({"ties"}, Deployment.of("x", three, leaders=SITES[:2], ranks=(1, 1)), "equally preferred"),
        ({}, Deployment.of("x", {SITES[1]: 1}, **lead), "should lead and holds no voter"),
    ]
    for kinds, deployment, words in asked:
        leaderless = deployment.read is not None and system.commits == "any"
        said = {"adapts" if kind == "least" else kind for kind in kinds} & system.expresses
        if leaderless or said or ("servers" in kinds and system.servers is None):
            continue
        if deployment.commit and deployment.read is None and system.commits != "majority":
            continue
        with pytest.raises(UnsupportedError, match=words):
            write_deployment(system, deployment, system.request(localities(system), "app"))


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for each in available():
        (FOLDER / f"{each}.txt").write_text(text_of(each), encoding="utf-8")
