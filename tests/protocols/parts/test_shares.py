"""Shares of paths by client: the sum over clients, proven by every method, written and refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import placement
from placement import InputError, Instance, Problem, UnsupportedError
from placement.evaluation.losses import score_after
from placement.evaluation.objective import MEAN_LATENCY as MEAN
from placement.evaluation.objective import score_of
from placement.io import load_instance, load_plan, save_instance, save_plan
from placement.model.configuration import Configuration
from placement.model.protocol_families import FAMILIES
from placement.model.protocol_parts.client_shares import share_names
from placement.overtime.replay.deployments import refuse_roles_of_replays
from placement.problem import describe
from placement.proof.certificate_check import check_certificate
from placement.support.status import Status
from placement.tail import Distributions, Percentile
from placement.tail.latency_mixture import mixture
from tests.effort import seeds
from tests.protocols.worlds import world

LED = {
    "leases": "interference", "leases:holders=2": "interference", "tidb": "follower",
    "mongodb": "linearizable", "follower-reads": "fresh",
}  # fmt: skip
EVERYONE = {
    "epaxos:multi=2": "slow", "atlas:multi=1": "slow", "tempo:multi=2": "slow",
    "caesar:multi=2": "slow", "fast-paxos:multi=2": "slow", "pqr": "interference",
    "abd:multi=2": "interference",
}  # fmt: skip


def test_every_protocol_has_at_most_one_share_and_all_are_drawn_here() -> None:
    named = {}
    for family in FAMILIES.values():
        shares = [key for key, one in family.parameters.items() if one.kind == "share"]
        assert len(shares) <= 1
        if shares:
            named[family.name] = shares[0]
    drawn = {name.partition(":")[0]: share for name, share in {**LED, **EVERYONE}.items()}
    assert drawn == named
    assert set(share_names()) == set(named.values())


def random_shares(rng: np.random.Generator, clients: tuple[str, ...]) -> dict[str, float]:
    """Return shares of some clients, ties and ends among them."""
    values = rng.choice([0.0, 0.1, 0.25, 1.0, float(rng.uniform())], len(clients))
    return {
        client: float(value)
        for client, value in zip(clients, values, strict=True)
        if rng.integers(4)
    }


def question(seed: int) -> tuple[Problem, str, str]:
    """Return a random question with shares by client, its protocol, and the parameter."""
    rng = np.random.default_rng([seed, 77])
    one = world(seed, sites=7, clients=int(rng.integers(1, 6)), ties=bool(rng.integers(2)))
    led = bool(rng.integers(2))
    name = str(rng.choice(list(LED if led else EVERYONE)))
    parameter = {**LED, **EVERYONE}[name]
    size = int(rng.integers(3, 5))
    voters = int(rng.integers(2, size + 1)) if led else size
    usual = "" if rng.integers(2) else f"{',' if ':' in name else ':'}{parameter}=0.4"
    shares = {parameter: random_shares(rng, one.clients), "slow": {}}
    pins: dict[str, object] = {} if rng.integers(2) else {"pinned": ["s5"], "forbidden": ["s1"]}
    problem = Problem(
        one.replace(shares=shares), replicas=size, voters=voters, protocol=name + usual, **pins
    )  # type: ignore[arg-type]
    return problem, name + usual, parameter


def of_client(problem: Problem, protocol: str, parameter: str, client: int) -> Problem:
    """Return the question about one client, whose share is a parameter of the protocol."""
    given = problem.instance
    shares = {name: value for name, key, value in given.shares if key == parameter}
    counts = np.zeros_like(given.counts)
    counts[:, client] = given.counts[:, client]
    own = placement.Protocol(protocol)
    if given.clients[client] in shares:
        own = own.with_shares({parameter: shares[given.clients[client]]})
    return Problem(
        given.replace(counts=counts, shares=()),
        replicas=problem.replicas,
        voters=problem.voters,
        protocol=own,
    )


@pytest.mark.parametrize("part", seeds(4, 100))
def test_the_score_is_the_sum_over_clients_with_their_shares(part: int) -> None:
    for seed in range(10 * part, 10 * part + 10):
        problem, protocol, parameter = question(seed)
        rng = np.random.default_rng(seed)
        alone = [
            of_client(problem, protocol, parameter, client)
            for client in range(len(problem.instance.clients))
            if problem.instance.counts[:, client].any()
        ]
        held = problem.rules.lease_holders
        for _ in range(2):
            group = rng.permutation(7)[: problem.rules.replicas_max].tolist()
            chosen = Configuration.of(
                group[0], group[: problem.rules.voters], group, group[:held] if held else ()
            )
            total = sum(score_of(each, chosen) for each in alone)
            assert score_of(problem, chosen) == pytest.approx(total, rel=1e-12), seed


@pytest.mark.parametrize("part", seeds(4, 250))
def test_every_method_finds_what_enumeration_finds(part: int) -> None:
    for seed in range(4 * part, 4 * part + 4):
        problem, _, _ = question(seed)
        best = placement.solve(problem, "exhaustive")
        terms = problem.demand.waits
        methods = ["exact"] if problem.rules.lease_holders else ["exact", "sets"]
        if seed % 4 == 0 and all(one.origin == "leader" or one.to_lease_holder for one in terms):
            methods += ["milp", "cp-sat"]
        for method in methods:
            plan = placement.solve(problem, method)
            assert plan.status is best.status, (seed, method)
            if plan.configuration is None:
                continue
            assert plan.score == pytest.approx(best.score, rel=1e-9), (seed, method)
            assert plan.score == score_of(problem, plan.configuration)
            if method == "exact":
                if plan.certificate is not None:
                    check_certificate(plan)
                own = sum(row.operations * row.latency for row in plan.per_client if row.operations)
                assert own == pytest.approx(plan.score, rel=1e-12)
                rows = [row for row in plan.per_operation if row.operations]
                assert sum(row.operations * row.latency for row in rows) == pytest.approx(
                    plan.score
                )
                assert [row.operation for row in plan.per_operation] == [
                    operation.name for operation in problem.instance.operations
                ]
                for row, part_of in zip(plan.per_operation, plan.parts, strict=True):
                    parts = (part_of.to_nearest, part_of.to_leader, part_of.waiting)
                    if row.operations:
                        assert sum(parts) + part_of.constant == pytest.approx(row.latency)


@pytest.mark.parametrize("name", [*LED, *EVERYONE])
def test_the_same_share_for_all_clients_is_the_parameter_to_the_last_bit(name: str) -> None:
    one, parameter = world(12, ties=False), {**LED, **EVERYONE}[name]
    whole = f"{name}{',' if ':' in name else ':'}{parameter}=0.3"
    table = one.replace(shares={parameter: dict.fromkeys(one.clients, 0.3)})
    asked = Problem(table, replicas=4, voters=4, protocol=name)
    known = Problem(one, replicas=4, voters=4, protocol=whole)
    assert asked.operations == known.operations
    mine, theirs = placement.solve(asked), placement.solve(known)
    assert mine.configuration == theirs.configuration
    assert (mine.score, mine.bound) == (theirs.score, theirs.bound)
    assert mine.per_client == theirs.per_client
    assert mine.per_operation == theirs.per_operation
    # a part of the clients in the table, the others by the parameter
    some = one.replace(shares={parameter: {"c0": 0.3}})
    assert Problem(some, replicas=4, voters=4, protocol=whole).operations == known.operations


@pytest.mark.parametrize("name", [*LED, *EVERYONE])
def test_a_client_without_demand_parts_operations_and_changes_nothing(name: str) -> None:
    one, parameter = world(14, ties=False), {**LED, **EVERYONE}[name]
    counts = one.counts.copy()
    counts[:, 2] = 0
    shares = {**dict.fromkeys(one.clients, 0.25), "c2": 0.75}
    whole = f"{name}{',' if ':' in name else ':'}{parameter}=0.25"
    plain = one.replace(counts=counts)
    parted = plain.replace(shares={parameter: shares})
    asked = Problem(parted, replicas=4, voters=4, protocol=name)
    known = Problem(plain, replicas=4, voters=4, protocol=whole)
    assert len(asked.operations) > len(known.operations)
    mine, theirs = placement.solve(asked), placement.solve(known)
    assert mine.score == pytest.approx(theirs.score, rel=1e-12)
    assert [row.latency for row in mine.waits] == pytest.approx(
        [row.latency for row in theirs.waits]
    )
    assert [row.wait for row in mine.waits] == [row.wait for row in theirs.waits]
    if mine.failures and theirs.failures:
        for after, other in zip(mine.failures.each, theirs.failures.each, strict=True):
            assert after.mean_latency == pytest.approx(other.mean_latency)


@pytest.mark.parametrize("name", ["epaxos:multi=2", "leases", "tidb", "pqr", "fast-paxos:multi=3"])
def test_losses_and_percentiles_take_shares(name: str) -> None:
    one, parameter = world(21, sites=6, clients=3, ties=False), {**LED, **EVERYONE, name: "slow"}
    key = {"leases": "interference", "tidb": "follower", "pqr": "interference"}.get(name, "slow")
    assert parameter[name] in ("slow", key)
    table = one.replace(shares={key: {"c0": 0.2, "c1": 0.75, "c2": 0.0}})
    spread = Distributions.parametric(one, variation=0.3, width=5.0)
    goal = Percentile(95, spread)
    problem = Problem(table, replicas=4, voters=4, protocol=name, objective=goal)
    chosen = Configuration.of(0, range(4), range(4))
    parts = [of_client(problem, name, key, client) for client in range(3)]
    if name == "tidb":  # a share of the operations goes to the follower, the others do not
        whole_reads = [of_client(problem, f"tidb:follower={end}", "none", c) for c in range(3)
                       for end in (0, 1)]  # fmt: skip
        weights = [1 - 0.2, 0.2, 1 - 0.75, 0.75, 1.0, 0.0]
    else:
        whole_reads, weights = parts, [1.0] * 3
    whole = mixture(problem, chosen, spread)
    mixed = np.zeros(len(whole))
    total = sum(part.demand.operations for part in parts)
    for part, weight in zip(whole_reads, weights, strict=True):
        one_client = mixture(part.replace(objective=goal), chosen, spread)
        mixed[: len(one_client)] += weight * part.demand.operations / total * one_client
    assert np.allclose(whole, mixed, rtol=0, atol=1e-12)
    best = placement.solve(problem, "exhaustive")
    assert placement.solve(problem, "exact").objective == pytest.approx(best.objective, rel=1e-9)
    lossy = problem.replace(objective=placement.Contingency())
    plan = placement.solve(lossy, "exhaustive")
    assert placement.solve(lossy, "exact").objective == pytest.approx(plan.objective, rel=1e-9)
    for gone in range(3):
        after = score_after(problem.replace(objective=MEAN), chosen, {gone})
        alone = [score_after(part, chosen, {gone}) for part in parts]
        assert after
        for leader, value in after.items():
            own = (one.get(leader, min(one.values())) for one in alone)  # some need no leader
            assert value == pytest.approx(sum(own), rel=1e-12)


def test_witnesses_and_heuristics_take_shares() -> None:
    one = world(23, ties=False).replace(shares={"follower": {"c0": 0.5, "c1": 0.1}})
    asked = Problem(one, replicas=3, voters=3, witnesses=1, protocol="tidb:tso=2")
    best = placement.solve(asked, "exhaustive")
    plan = placement.solve(asked, "exact")
    assert plan.score == pytest.approx(best.score, rel=1e-9)
    assert plan.certificate is not None
    check_certificate(plan)
    plain = Problem(one, replicas=3, voters=3, protocol="tidb")  # four coefficients, no waits
    best = placement.solve(plain, "exhaustive")
    for method in ("exact", "milp", "cp-sat"):
        assert placement.solve(plain, method).score == pytest.approx(best.score, rel=1e-9)
    for method in ("most-writes", "closest-to-writes", "best-mean", "local-search"):
        plan = placement.solve(plain, method)
        assert plan.configuration is not None
        assert plan.score >= best.score * (1 - 1e-12)
        assert plan.score == score_of(plain, plan.configuration)


def test_what_cannot_take_shares_by_client_refuses_them() -> None:
    one = world(25).replace(shares={"follower": {"c0": 0.5}})
    problem = Problem(one, replicas=3, voters=3, protocol="tidb")
    plan = placement.solve(problem)
    assert "follower by client" in describe(plan.problem)
    with pytest.raises(UnsupportedError, match=r"shares: .*follower by client"):
        placement.next_replicas(plan)
    with pytest.raises(UnsupportedError, match="shares"):
        refuse_roles_of_replays(problem)
    raft = problem.replace(protocol="raft")  # has no such share, and so takes the instance
    assert raft.client_paths is None
    assert placement.solve(raft).score == placement.solve(
        Problem(one.replace(shares=()), replicas=3, voters=3, protocol="raft")
    ).score  # fmt: skip


def test_a_large_share_of_one_client_is_named() -> None:
    one = world(26).replace(shares={"slow": {"c3": 0.9}})
    problem = Problem(one, replicas=3, voters=3, protocol="epaxos:multi=2,slow=0.1")
    assert any("slow = 0.9" in note for note in placement.solve(problem).notes)


def test_each_kind_takes_the_share_of_its_own_protocol() -> None:
    one = world(27, ties=False)
    kinds = {
        "bounded_read": "epaxos:slow=0.2", "strong_read": "epaxos:slow=0.2",
        "write": "epaxos:slow=0.7,multi=2",
    }  # fmt: skip
    shared = one.replace(shares={"slow": {"c1": 0.4}})
    chosen = Configuration.of(0, range(3), range(3))
    whole = score_of(Problem(shared, replicas=3, voters=3, protocol=kinds), chosen)
    total = 0.0
    for client in range(4):
        counts = np.zeros_like(one.counts)
        counts[:, client] = one.counts[:, client]
        own = kinds if client != 1 else {
            kind: "epaxos:slow=0.4,multi=2" if kind == "write" else "epaxos:slow=0.4"
            for kind in kinds
        }  # fmt: skip
        total += score_of(
            Problem(one.replace(counts=counts), replicas=3, voters=3, protocol=own), chosen
        )
    assert whole == pytest.approx(total, rel=1e-12)


# --- files -------------------------------------------------------------------------------------


def test_a_folder_has_a_table_of_shares_and_reads_back(tmp_path: Path) -> None:
    one = world(30).replace(shares={"slow": {"c2": 0.1, "c0": 1 / 3}, "fresh": {"c0": 1}})
    assert one.shares == (("c0", "fresh", 1.0), ("c0", "slow", 1 / 3), ("c2", "slow", 0.1))
    plain = one.replace(shares=())
    assert one != plain
    assert plain.fingerprint == world(30).fingerprint
    for kind in ("csv", "parquet"):
        folder = tmp_path / kind
        save_instance(one, folder, tables=kind)  # type: ignore[arg-type]
        manifest = json.loads((folder / "instance.json").read_text())
        assert manifest["version"] == 2
        assert manifest["tables"]["shares"] == f"shares.{kind}"
        again = load_instance(folder)
        assert again == one
        assert again.shares == one.shares
    save_instance(plain, tmp_path / "plain")
    assert json.loads((tmp_path / "plain" / "instance.json").read_text())["version"] == 1
    assert not (tmp_path / "plain" / "shares.csv").exists()
    assert Instance.from_frames(**one.to_frames()) == one
    assert "shares" not in plain.to_frames()
    save_instance(plain, tmp_path / "csv", force=True)  # the table of the old instance goes
    assert load_instance(tmp_path / "csv") == plain
    assert not (tmp_path / "csv" / "shares.csv").exists()


def test_a_manifest_by_hand_names_the_table(tmp_path: Path) -> None:
    save_instance(world(31), tmp_path / "mine")
    folder = tmp_path / "mine"
    (folder / "instance.json").unlink()
    (folder / "shares.csv").write_text("client,parameter,value\nc1,slow,0.25\nc0,slow,0\n")
    (folder / "instance.toml").write_text(
        'format = "replica-placement instance"\nversion = 2\n[tables]\nsites = "sites.csv"\n'
        'client_rtt = "client_rtt.csv"\nsite_rtt = "site_rtt.csv"\ncounts = "counts.csv"\n'
        'shares = "shares.csv"\n'
    )
    assert load_instance(folder).shares == (("c0", "slow", 0.0), ("c1", "slow", 0.25))
    for text, said in (
        ("client,parameter,value\nc1,slow,0.25\nc9,slow,0.1\n", ("row 3", "client", "'c9'")),
        ("client,parameter,value\nc1,sloow,0.25\n", ("row 2", "parameter", "'sloow'", "slow")),
        ("client,parameter,value\nc1,slow,1.25\n", ("row 2", "value", "1.25", "from 0 to 1")),
        ("client,parameter,value\nc1,slow,-0.1\n", ("row 2", "value", "from 0 to 1")),
        ("client,parameter,value\nc1,slow,nan\n", ("row 2", "value", "from 0 to 1")),
        ("client,parameter,value\nc1,slow,often\n", ("row 2", "value", "'often'")),
        ("client,parameter,value\nc1,slow,\n", ("row 2", "value", "from 0 to 1")),
        ("client,parameter,value\n,slow,0.1\n", ("row 2", "client", "a name")),
        ("client,parameter,value\nc1,slow,0.1\nc1,slow,0.1\n", ("row 3", "before")),
        ("client,parameter,share\nc1,slow,0.1\n", ("no such column", "value")),
    ):
        (folder / "shares.csv").write_text(text)
        with pytest.raises(InputError) as error:
            load_instance(folder)
        assert "shares.csv" in str(error.value)
        assert all(word in str(error.value) for word in said), str(error.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"slow": {"nobody": 0.1}}, "unknown client"),
        ({"sloow": {"c0": 0.1}}, "no parameter of a protocol"),
        ({"slow": {"c0": 1.5}}, "from 0 to 1"),
        ({"slow": {"c0": "much"}}, "from 0 to 1"),
        ({"slow": 0.5}, "client -> share"),
        ([("c0", "slow", 0.1), ("c0", "slow", 0.2)], "given before"),
        ([("c0", "slow")], "not a row"),
        (7, "rows of client"),
    ],
)
def test_bad_shares_are_refused_in_python(given: object, said: str) -> None:
    with pytest.raises(InputError, match="shares") as error:
        world(32).replace(shares=given)
    assert said in str(error.value)


@pytest.mark.parametrize("protocol", ["leases", "epaxos:multi=2"])
def test_a_plan_file_holds_the_shares_and_changed_ones_are_refused(
    tmp_path: Path, protocol: str
) -> None:
    key = "interference" if protocol == "leases" else "slow"
    one = world(33, ties=False).replace(shares={key: {"c0": 0.2, "c1": 0.8}})
    plan = placement.solve(Problem(one, replicas=3, voters=3, protocol=protocol))
    assert plan.status is Status.OPTIMAL
    save_plan(plan, tmp_path / "plan.json")
    again = load_plan(tmp_path / "plan.json", check=True)
    assert again.problem.instance == one
    assert again.score == plan.score
    assert again.certificate is not None
    check_certificate(again)
    document = json.loads((tmp_path / "plan.json").read_text())
    assert document["instance"]["content"]["shares"] == [["c0", key, 0.2], ["c1", key, 0.8]]
    document["instance"]["content"]["shares"][0][2] = 0.3
    (tmp_path / "other.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match="fingerprint"):
        load_plan(tmp_path / "other.json")
    # the same certificate proves nothing about other shares
    other = one.replace(shares={key: {"c0": 0.0, "c1": 0.1}})
    fingerprint = other.fingerprint
    document["instance"]["content"]["shares"] = [list(row) for row in other.shares]
    document["instance"]["content"]["fingerprint"] = fingerprint
    document["instance"]["fingerprint"] = fingerprint
    (tmp_path / "other.json").write_text(json.dumps(document))
    with pytest.raises(InputError):
        load_plan(tmp_path / "other.json", check=True)
