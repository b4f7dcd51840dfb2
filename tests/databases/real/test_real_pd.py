"""A real PD with stores that only send heartbeats: its scheduler moves a region to the plan."""

import json
import subprocess

import pytest

from placement.databases import Deployment, Localities, load_system
from placement.databases.system import write_deployment
from tests.databases.real.tools import free_port, go_program

pytestmark = pytest.mark.databases

SYSTEM = load_system("pd")
PLACES = ("us", "eu", "ap")
STORES = [place for place in PLACES for _ in range(3)]


def answers(folder, documents):
    """Return what PD answers to each document, and where the region's replicas are then."""
    program = go_program("pd", "-tags", "without_dashboard")
    done = subprocess.run(
        [program, folder, str(free_port()), str(free_port()), *STORES],
        input="".join(json.dumps(text) + "\n" for text in documents),
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def test_the_scheduler_brings_a_region_to_each_plan(tmp_path):
    # the region begins with one replica at the first store, in us
    plans = [
        Deployment.of("x", {"us": 2, "eu": 2, "ap": 1}, leaders=("eu",)),
        Deployment.of("x", {"us": 1, "ap": 2}, {"eu": 1}, leaders=("ap",)),
        Deployment.of("x", {"us": 3}, {"ap": 2, "eu": 1}, leaders=("us",)),
    ]
    request = SYSTEM.request(Localities.plain(PLACES))
    texts = [write_deployment(SYSTEM, plan, request).text for plan in plans]
    found = answers(tmp_path, texts)
    for plan, answer in zip(plans, found, strict=True):
        assert answer["status"] == 200, answer
        assert answer["voters"] == plan.voters_at
        assert (answer["learners"] or {}) == plan.non_voters_at
        assert answer["leader"] == plan.leaders[0]
        assert answer["orders"] >= 3


def test_what_the_server_refuses(tmp_path):
    good = Deployment.of("x", {"us": 2, "eu": 1}, leaders=("us",))
    request = SYSTEM.request(Localities.plain((*PLACES, "mars")))
    text = write_deployment(SYSTEM, good, request).text
    nowhere = Deployment.of("x", {"us": 2, "mars": 1}, leaders=("us",))
    bad = [
        text.replace('"count": 1', '"count": 0'),
        text.replace('"role": "leader",\n   "count": 1', '"role": "leader",\n   "count": 2'),
        text.replace('"role": "voter"', '"role": "leader"'),
        text.replace('"op": "in"', '"op": "near"'),
        write_deployment(SYSTEM, nowhere, request).text,
    ]
    assert all(each != text for each in bad)
    assert all(answer["status"] >= 400 for answer in answers(tmp_path, bad))
