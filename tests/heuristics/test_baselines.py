"""Baselines worked out by hand on small test networks, with operations of every kind."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import placement
from heuristics import baselines as nearest_centroid
from heuristics.baselines import (
    coefficient_of_variation,
    diversity,
    greatest_writer,
    p_median,
    spread_out,
)
from placement import Instance, Problem, UnsupportedError
from placement.errors import InputError
from placement.evaluation.rules_of_thumb import rules_of_thumb
from placement.io.instance_folder import (
    instance_document,
    instance_from_document,
    load_instance,
    save_instance,
)
from placement.methods.options import Options
from placement.methods.registry import load_method, run
from placement.model.operations import STANDARD_OPERATIONS, Operation
from placement.plan import Plan
from placement.testing import random_instance
from tests.strategies import problems

SITES = ("lisbon", "paris", "vienna", "tokyo", "osaka")
WHERE = np.array([[38.7, -9.1], [48.9, 2.4], [48.2, 16.4], [35.7, 139.7], [34.7, 135.5]])
RTT = np.array(
    [
        [0, 30, 50, 240, 245],
        [30, 0, 20, 220, 225],
        [50, 20, 0, 230, 235],
        [240, 220, 230, 0, 8],
        [245, 225, 235, 8, 0],
    ],
    dtype=float,
)
WEAK, STRONG, WRITE = 0, 2, 3


def world(**issued: dict[int, float]) -> Instance:
    """One client per city; counts by city and operation."""
    counts = np.zeros((5, 5))
    for city, operations in issued.items():
        for operation, count in operations.items():
            counts[SITES.index(city), operation] = count
    return Instance(
        sites=SITES,
        clients=SITES,
        client_rtt=RTT + np.eye(5),
        site_rtt=RTT,
        counts=counts,
        domains={
            "continent": ("Europe",) * 3 + ("Asia",) * 2,
            "country": ("PT", "FR", "AT", "JP", "JP"),
        },
        site_coordinates=WHERE,
        client_coordinates=WHERE,
    )


def ask(name: str, instance: Instance, **asked: object) -> Plan:
    return run(load_method(name), Problem(instance, **asked), Options())  # type: ignore[arg-type]  # by name


# --- nearest-centroid


def test_centroid_is_a_direction_not_a_mean_of_degrees() -> None:
    """Two clients at either side of the date line meet there, not at Greenwich."""
    ends = np.array([[0.0, 170.0], [0.0, -170.0]])
    instance = Instance(
        sites=("africa", "fiji"),
        clients=("west", "east"),
        client_rtt=np.array([[1.0, 2], [1, 2]]),
        site_rtt=np.array([[0.0, 1], [1, 0]]),
        counts=np.full((2, 5), 1.0),
        site_coordinates=np.array([[0.0, 0.0], [0.0, 180.0]]),
        client_coordinates=ends,
    )
    centre = nearest_centroid.demand_centroid(Problem(instance, replicas=1, voters=1))
    assert centre is not None
    assert abs(centre[0]) < 1e-9
    assert abs(abs(centre[1]) - 180) < 1e-9
    assert ask("nearest-centroid", instance, replicas=1, voters=1).leader == "fiji"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"site_coordinates": None}, "no coordinates of its sites"),
        ({"client_coordinates": None}, "no coordinates of its clients"),
        ({"client_coordinates": np.where(WHERE == 48.9, np.nan, WHERE)}, "'paris' are unknown"),
        ({"client_coordinates": np.array([[0, 0], [0, 180], *WHERE[:3]])}, "no centroid"),
    ],
)
def test_centroid_refuses_what_has_none(change: dict[str, object], words: str) -> None:
    antipodes = {"lisbon": {WEAK: 1.0}, "paris": {WEAK: 1.0}}
    with pytest.raises(UnsupportedError, match=words):
        ask("nearest-centroid", world(**antipodes).replace(**change), replicas=2, voters=1)


# --- best-mean, best-cov


def test_best_mean_knows_no_demand() -> None:
    """All demand in Tokyo; the sites of smallest mean RTT are European all the same."""
    plan = ask("best-mean", world(tokyo={WRITE: 9}), replicas=3, voters=3)
    assert plan.replicas == ("lisbon", "paris", "vienna")
    means = (RTT + np.eye(5)).mean(axis=0)
    waits = {"lisbon": 30, "paris": 20, "vienna": 20}
    best = min(waits, key=lambda s: means[SITES.index(s)] + waits[s])
    assert plan.leader == best == "paris"


def test_best_cov_prefers_the_fair_leader() -> None:
    """Among the same three replicas the leader of least relative spread, by its definition."""
    plan = ask("best-cov", world(tokyo={WRITE: 9}), replicas=3, voters=3)
    latency = RTT[:, :3] + np.eye(5)[:, :3] + np.array([30, 20, 20])
    expected = (latency.std(axis=0) / latency.mean(axis=0)).argmin()
    assert plan.replicas == ("lisbon", "paris", "vienna")
    assert plan.leader == SITES[int(expected)]
    assert coefficient_of_variation(np.zeros((3, 2))).tolist() == [0, 0]


@given(st.integers(0, 10_000), st.sampled_from([3, 5]))
def test_best_mean_leads_as_fantoch_does(seed: int, voters: int) -> None:
    """With equal weights no leader of the same replicas has a smaller mean write latency."""
    instance = random_instance(seed, sites=7, clients=9)
    writes = np.zeros((9, 5))
    writes[:, WRITE] = 1
    problem = Problem(instance.replace(counts=writes), replicas=voters, voters=voters)
    plan = run(load_method("best-mean"), problem, Options())
    assert plan.configuration is not None
    replicas = list(plan.configuration.replicas)
    m = voters // 2 + 1
    means = []
    for leader in replicas:
        wait = np.sort(instance.site_rtt[leader, replicas])[m - 1]
        means.append(float((instance.client_rtt[:, leader] + wait).mean()))
    assert plan.mean_latency == pytest.approx(min(means))
    # and the optimum over all of them is at least as good, as it must be
    best = run(load_method("exhaustive"), problem, Options())
    assert best.objective <= plan.objective * (1 + 1e-9)


# --- most-writes, closest-to-writes, smallest-quorum


def test_most_writes_leads_where_they_come_from() -> None:
    """Vienna writes most; its quorum partner is Paris; reads pull the third replica to Tokyo."""
    instance = world(vienna={WRITE: 5}, lisbon={WRITE: 3}, tokyo={WEAK: 100})
    plan = ask("most-writes", instance, replicas=3, voters=3)
    assert plan.leader == "vienna"
    assert plan.replicas == ("paris", "vienna", "tokyo")


def test_closest_to_writes_may_not_sit_at_the_writer() -> None:
    instance = world(vienna={WRITE: 5}, tokyo={WEAK: 50})
    plan = ask("closest-to-writes", instance, replicas=3, voters=3, non_voters=["vienna"])
    assert plan.leader == "paris"
    tier1 = ask(
        "closest-to-writes",
        instance,
        replicas=["lisbon", "tokyo", "osaka"],
        voters=["lisbon", "tokyo", "osaka"],
    )
    assert tier1.leader == "lisbon"


@pytest.mark.parametrize("name", ["most-writes", "closest-to-writes"])
def test_undefined_without_transactions(name: str) -> None:
    """No division by zero, no arbitrary leader: a refusal that says why."""
    with pytest.raises(UnsupportedError, match="no client issues any"):
        ask(name, world(vienna={WEAK: 5, STRONG: 2}), replicas=3, voters=3)


def test_smallest_quorum_looks_at_nothing_else() -> None:
    """Tokyo and Osaka are 8 ms apart: they vote, wherever the clients are."""
    plan = ask("smallest-quorum", world(lisbon={STRONG: 99}), replicas=3, voters=3)
    assert plan.leader == "tokyo"
    assert plan.quorum_wait == 8
    fixed = ["lisbon", "paris", "tokyo"]
    assert ask("smallest-quorum", world(tokyo={WRITE: 9}), replicas=fixed, voters=fixed).leader in (
        "lisbon",
        "paris",
    )


# --- max-diversity


def test_max_diversity_spreads_and_leads_at_the_demand() -> None:
    """After busy Tokyo a European site, then another country: Osaka comes last."""
    instance = world(tokyo={WEAK: 9}, vienna={WEAK: 2}, lisbon={WEAK: 1})
    assert spread_out(diversity(instance), np.array([1.0, 0, 2, 9, 0]), 3) == (3, 2, 0, 1, 4)
    plan = ask("max-diversity", instance, replicas=3, voters=3)
    assert plan.leader == "tokyo"
    assert plan.replicas == ("lisbon", "vienna", "tokyo")


# --- p-median-first


@given(problems(kinds=(), max_sites=7))
def test_p_median_is_a_local_optimum_at_least(problem: Problem) -> None:
    """No exchange of one site lowers the p-median cost of the set that is found."""
    size = problem.rules.replicas_min
    chosen = p_median(problem, size)
    assert chosen is not None
    rtt = problem.instance.client_rtt
    weight = problem.instance.counts.sum(axis=(0, 2))

    def cost(sites: tuple[int, ...]) -> float:
        return float(weight @ rtt[:, sites].min(axis=1))

    assert len(set(chosen)) == size
    for out, into in itertools.product(chosen, range(rtt.shape[1])):
        if into not in chosen:
            other = tuple(into if s == out else s for s in chosen)
            assert cost(chosen) <= cost(other) + 1e-9 * (1 + cost(other))


ETCD = (Operation("linearizable_read", direct=1, quorum=1), Operation("put", direct=1, quorum=1))


def reads_and_writes(operations=ETCD, writes=1.0):
    """Client a reads a lot (with votes), client b writes a little."""
    return placement.Instance(
        sites=("a", "b", "c"),
        clients=("a", "b"),
        client_rtt=[[1, 50, 60], [50, 1, 40]],
        site_rtt=[[0, 50, 60], [50, 0, 40], [60, 40, 0]],
        counts=[[1000, 0], [0, writes]],
        operations=operations,
    )


def test_kinds():
    assert [o.kind for o in STANDARD_OPERATIONS] == ["read", "read", "read", "write", "write"]
    assert [o.kind for o in ETCD] == ["read", "write"]
    assert Operation("lease", direct=1, kind="write").is_transaction
    assert Operation("scan", quorum=1, kind="read").kind == "read"
    with pytest.raises(InputError, match="unknown kind of operation 'scan'"):
        Operation("scan", kind="readonly")


def test_a_linearizable_read_is_no_write():
    problem = placement.Problem(reads_and_writes(), replicas=3, voters=3)
    assert greatest_writer(problem) == 1
    for method in ("most-writes", "closest-to-writes"):
        assert placement.solve(problem, method).leader == "b"
    plan = placement.solve(problem, "exhaustive")
    (rule,) = [c for c in rules_of_thumb(problem, plan.configuration)
               if c.strategy == "closest-to-writes"]  # fmt: skip
    assert rule.leader == "b"
    # said to be a write, it decides
    said = (Operation("linearizable_read", direct=1, quorum=1, kind="write"), ETCD[1])
    problem = placement.Problem(reads_and_writes(said), replicas=3, voters=3)
    assert placement.solve(problem, "most-writes").leader == "a"


def test_nobody_writes_where_all_that_waits_for_votes_is_a_read():
    problem = placement.Problem(reads_and_writes(writes=0), replicas=3, voters=3)
    with pytest.raises(placement.UnsupportedError, match="no client issues any"):
        placement.solve(problem, "most-writes")


def test_kinds_survive_files(tmp_path):
    own = (Operation("scan", quorum=1, kind="read"), Operation("put", quorum=1))
    instance = reads_and_writes(own)
    save_instance(instance, tmp_path / "w")
    manifest = json.loads((tmp_path / "w" / "instance.json").read_text())
    assert [row.get("kind") for row in manifest["operations"]] == ["read", None]
    assert load_instance(tmp_path / "w").operations == own
    embedded = json.loads(json.dumps(instance_document(instance)))
    path = tmp_path / "e.json"
    path.write_text(json.dumps(embedded))
    from placement.io.formats.document import read_document

    assert instance_from_document(read_document(path)).operations == own


def test_kinds_in_a_frame():
    frame = pd.DataFrame(
        {"near": [0, 0], "relay": [0, 0], "direct": [1, 1], "quorum": [1, 1],
         "kind": ["read", "write"]},
        index=["scan", "put"],
    )  # fmt: skip
    counts = pd.DataFrame([[3, 4]], index=["c"], columns=["scan", "put"])
    instance = placement.Instance.from_frames(
        client_rtt=pd.DataFrame([[1.0]], index=["c"], columns=["s"]),
        site_rtt=pd.DataFrame([[0.0]], index=["s"], columns=["s"]),
        counts=counts,
        operations=frame,
    )
    assert [o.kind for o in instance.operations] == ["read", "write"]
    assert placement.Instance.from_frames(**instance.to_frames()).operations == instance.operations
