"""A protocol for each kind of operation: the sum of its parts, proven, written and refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import placement
from placement import InputError, Operation, Problem, Protocol
from placement.cli.verbs.compare import protocol_names
from placement.evaluation.objective import score_of
from placement.io import load_instance, load_plan, save_instance, save_plan
from placement.model.configuration import Configuration
from placement.model.protocol_parts.protocol_kinds import KINDS
from placement.plan import Plan
from placement.proof.certificate_check import check_certificate
from placement.support.status import Status
from tests.effort import seeds
from tests.protocols.test_command import run
from tests.protocols.worlds import world

ORDERED = (
    "raft", "tidb:follower=0.4", "mongodb:linearizable=0.3", "follower-reads:fresh=0.6",
    "multipaxos", "spanner:epsilon=3",
)  # fmt: skip
FREE = (*ORDERED, "flexiraft:level=region", "semi-sync:level=region")
WITHOUT = (
    "epaxos:slow=0.1,multi=2", "atlas:slow=0.2,multi=2", "mencius:multi=2", "hermes:multi=2",
    "abd:multi=2", "fast-paxos:slow=0.3,multi=2", "coordinated:r=2,w=2,multi=2",
)  # fmt: skip


def random_kinds(rng: np.random.Generator) -> tuple[dict[str, str], bool]:
    """Return protocols that do not contradict each other, and whether all replicas vote."""
    style = rng.integers(4)
    if style == 0:  # every kind under some protocol with a leader
        found = {kind: str(rng.choice(FREE)) for kind in KINDS}
        for kind in KINDS:
            if rng.integers(3) == 0:
                del found[kind]
        return found or {"write": "raft"}, False
    if style == 1:
        lease = str(rng.choice(["leases", "leases:interference=0.2"]))
        found = {"write": "leases", "strong_read": lease, "weak_read": "follower-reads:fresh=0.3"}
        return ({**found, "bounded_read": "raft"} if rng.integers(2) else found), False
    if style == 2:  # a client reads from a majority
        return {"strong_read": "pqr:interference=0.1", "write": str(rng.choice(ORDERED))}, True
    one = str(rng.choice(WITHOUT))
    name, _, rest = one.partition(":")
    if rest.startswith("slow"):
        one, other = f"{name}:slow=0.4,multi=2", f"{name}:slow=0.05"
    else:
        other = one
    kinds = {"bounded_read": other, "strong_read": other, "write": one}
    return ({**kinds, "weak_read": "raft"} if rng.integers(2) else kinds), True


def question(seed: int) -> Problem:
    """Return a random question with a protocol for each of some kinds."""
    rng = np.random.default_rng([seed, 31])
    kinds, all_vote = random_kinds(rng)
    one = world(seed, sites=7, clients=4, ties=bool(rng.integers(2)))
    size = int(rng.integers(3, 5))
    voters = size if all_vote else int(rng.integers(2, size + 1))
    pins: dict[str, object] = {} if rng.integers(2) else {"pinned": ["s5"], "forbidden": ["s1"]}
    return Problem(one, replicas=size, voters=voters, protocol=kinds, **pins)  # type: ignore[arg-type]


def alone(problem: Problem, place: int) -> placement.Instance:
    """Return the instance with the demand of one operation."""
    counts = np.zeros_like(problem.instance.counts)
    counts[:, :, place] = problem.instance.counts[:, :, place]
    return problem.instance.replace(counts=counts)


@pytest.mark.parametrize("part", seeds(4, 100))
def test_the_score_is_the_sum_over_the_kinds_under_their_protocols(part: int) -> None:
    kind_of = ("weak_read", "bounded_read", "strong_read", "write", "multi_write")
    for seed in range(10 * part, 10 * part + 10):
        problem = question(seed)
        protocol = problem.protocol
        assert isinstance(protocol, Protocol)
        rng = np.random.default_rng(seed)
        for _ in range(3):
            group = rng.permutation(7)[: problem.rules.replicas_max].tolist()
            chosen = Configuration.of(group[0], group[: problem.rules.voters], group)
            total = 0.0
            for place, kind in enumerate(kind_of):
                each = protocol.part(kind)
                lone = problem.replace(
                    instance=alone(problem, place), protocol=each or "raft", pinned=(), forbidden=()
                )
                total += score_of(lone, chosen)
            free = problem.replace(pinned=(), forbidden=())
            assert score_of(free, chosen) == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize("part", seeds(4, 250))
def test_every_method_finds_what_enumeration_finds(part: int) -> None:
    for seed in range(4 * part, 4 * part + 4):
        problem = question(seed)
        best = placement.solve(problem, "exhaustive")
        waits = [term.origin for term in problem.demand.waits]
        methods = ["exact", "sets"]
        if seed % 4 == 0 and all(origin == "leader" for origin in waits):
            methods += ["milp", "cp-sat"]
        for method in methods:
            plan = placement.solve(problem, method)
            assert plan.status is best.status, (seed, method)
            if plan.configuration is not None:
                assert plan.score == pytest.approx(best.score, rel=1e-9), (seed, method)
                assert plan.score == score_of(problem, plan.configuration)
            if method == "exact" and plan.certificate is not None:
                check_certificate(plan)


@pytest.mark.parametrize(
    "protocol",
    ["raft", "leases:interference=0.2", "leases:holders=2", "spanner:epsilon=2", "crdb-global",
     "tidb:follower=0.4", "flexible:quorum=2", "flexiraft:level=region", "mongodb:linearizable=0.2",
     "epaxos:slow=0.1,multi=2", "hermes:multi=2", "abd:interference=0.3,multi=2",
     "pqr:interference=0.1", "fast-paxos:slow=0.2,multi=1", "coordinated:r=2,w=2,multi=2"],
)  # fmt: skip
def test_the_same_protocol_for_every_kind_is_that_protocol_to_the_last_bit(protocol: str) -> None:
    one = world(11, ties=False)
    whole = Problem(one, replicas=4, voters=4, protocol=protocol)
    parts = Problem(one, replicas=4, voters=4, protocol=dict.fromkeys(KINDS, protocol))
    assert parts.operations == whole.operations
    assert parts.rules.lease_holders == whole.rules.lease_holders
    assert parts.rules.quorum == whole.rules.quorum
    mine, theirs = placement.solve(parts), placement.solve(whole)
    assert mine.configuration == theirs.configuration
    assert (mine.score, mine.bound) == (theirs.score, theirs.bound)
    assert isinstance(parts.protocol, Protocol)
    assert isinstance(whole.protocol, Protocol)
    assert parts.protocol.fast_quorum(4) == whole.protocol.fast_quorum(4)
    slow, other = parts.slow_demand, whole.slow_demand
    assert (slow is None) == (other is None)
    if slow is not None and other is not None:
        assert np.array_equal(slow.coefficients, other.coefficients)
        assert np.array_equal(slow.times, other.times)


def test_transactions_over_groups_follow_the_writes_and_other_kinds_stay() -> None:
    one = world(2)
    problem = Problem(one, replicas=3, voters=3, protocol={"write": "leases"})
    waits = {each.name: [str(wait) for wait in each.waits] for each in problem.operations}
    assert waits["single_group"] == ["leader: quorum of voters + all of replicas"]
    assert waits["multi_group"] == ["2 × leader: quorum of voters + all of replicas"]
    assert problem.operations[:3] == one.operations[:3]
    notes = " ".join(placement.solve(problem).notes)
    assert "no protocol is given for weak_read, bounded_read, strong_read: kept as given" in notes


@pytest.mark.parametrize(
    ("given", "says", "way_out"),
    [
        ("write=epaxos; strong_read=raft", "without a leader", "under the same protocol"),
        ("write=epaxos; strong_read=atlas", "contradict each other", "under the same protocol"),
        ("write=epaxos; weak_read=follower-reads", "without a leader", "same protocol"),
        ("write=raft; strong_read=hermes", "contradict", "both under protocols with a leader"),
        ("write=raft; strong_read=leases", "relies on writes", "write=leases"),
        ("strong_read=leases", "relies on writes", "write=leases"),
        ("write=leases; multi_write=raft; strong_read=leases", "multi_write do not", "multi_w"),
        ("write=raft; strong_read=crdb-global", "relies on writes", "write=crdb-global"),
        ("write=leases:holders=2; strong_read=leases:holders=3", "differ in holders", "the same"),
        ("write=leases; strong_read=leases:holders=voters", "differ in holders", "same holders"),
        ("write=raft; weak_read=leases:holders=2", "holders of weak_read", "weak_read without it"),
        ("write=raft; strong_read=flexible:quorum=2", "quorum of strong_read", "without it"),
        ("write=flexible:quorum=2; multi_write=raft", "different members", "under flexible"),
        ("write=atlas:f=1; strong_read=atlas:f=2", "differ in f", "same f"),
        ("write=flexiraft:level=region; strong_read=pqr", "asks a majority", "such as raft"),
        ("write=raft; write=leases", "not a protocol of a kind", "each kind once"),
        ("writes=raft", "unknown kind", "multi_write"),
        ("write=raft; leases", "not a protocol of a kind", "one protocol for all"),
        ("write=rift", "unknown protocol", "did you mean"),
        ("write=leases:holder=2", "no such parameter", "holders"),
        (";", "no protocol", "some kind"),
    ],
)  # fmt: skip
def test_contradictions_are_refused_with_a_way_out(given: str, says: str, way_out: str) -> None:
    with pytest.raises(InputError) as error:
        Protocol(given)
    assert error.value.field == "protocol" or says == "no such parameter"
    assert says in str(error.value)
    assert way_out in str(error.value)


def test_what_the_question_contradicts_is_refused() -> None:
    one = world(4)
    with pytest.raises(InputError, match="every replica votes"):
        Problem(one, replicas=4, voters=3, protocol={"write": "raft", "strong_read": "pqr"})
    with pytest.raises(InputError, match="asks a leader, and the protocol of the writes has none"):
        Problem(one, replicas=3, voters=3, protocol={"write": "epaxos:multi=1"})
    strict = world(4, operations=[Operation("get", near=1), Operation("put", direct=1, quorum=1)])
    Problem(strict, replicas=3, voters=3, protocol={"write": "epaxos"})  # nothing asks a leader
    with pytest.raises(InputError, match="no path for multi_group"):
        Problem(one, replicas=3, voters=3, protocol=dict.fromkeys(KINDS, "epaxos"))
    with pytest.raises(InputError, match="parameters beside"):
        Protocol({"write": "leases"}, {"holders": 3})
    with pytest.raises(InputError, match="not a name"):
        Problem(one, replicas=3, voters=3, protocol=["raft"])  # type: ignore[arg-type]
    nested = Protocol("write=raft")
    with pytest.raises(InputError, match="within a kind"):
        Protocol({"write": nested})
    with pytest.raises(InputError, match="unknown protocol"):
        _ = nested.family
    with pytest.raises(InputError, match="quorum <= 3"):
        Problem(one, replicas=3, voters=3, protocol={"write": "flexible:quorum=4"})


def test_the_text_is_canonical_and_plan_files_hold_it(tmp_path: Path) -> None:
    protocol = Protocol({"write": Protocol("leases"), "weak_read": "follower-reads:fresh=0.70"})
    assert str(protocol) == "weak_read=follower-reads:fresh=0.7; write=leases"
    assert Protocol(str(protocol)) == protocol
    assert len({protocol, Protocol(str(protocol))}) == 1
    assert protocol != Protocol("write=leases")
    plan = placement.solve(Problem(world(5), replicas=4, voters=3, protocol=protocol))
    assert plan.status is Status.OPTIMAL
    save_plan(plan, tmp_path / "plan.json")
    document = json.loads((tmp_path / "plan.json").read_text())
    assert document["version"] == 2
    assert document["problem"]["protocol"] == str(protocol)
    again = load_plan(tmp_path / "plan.json", check=True)
    assert again.problem.protocol == protocol
    assert again.score == plan.score
    for changed in ("write=leases", "leases", "weak_read=follower-reads:fresh=0.6; write=leases"):
        document["problem"]["protocol"] = changed
        (tmp_path / "other.json").write_text(json.dumps(document))
        with pytest.raises(InputError):
            load_plan(tmp_path / "other.json", check=True)


def test_protocols_are_compared_by_name() -> None:
    problem = Problem(world(6), replicas=3, voters=3)
    mapped = {"weak_read": "follower-reads:fresh=0.7", "write": "leases"}
    table = placement.compare_protocols(problem, ["raft", mapped, "write=raft"])
    name = "weak_read=follower-reads:fresh=0.7; write=leases"
    assert list(table["protocol"]) == ["raft", name, "write=raft"]
    best = placement.solve(problem.replace(protocol=mapped))
    assert table["mean_latency"][1] == best.mean_latency
    assert table["mean_latency"][2] == table["mean_latency"][0]
    assert protocol_names(["write=atlas:f=1,slow=0.1;strong_read=atlas,raft"]) == [
        "write=atlas:f=1,slow=0.1;strong_read=atlas", "raft",
    ]  # fmt: skip
    assert protocol_names(["raft,write=flexible:quorum=2,weak_read=raft"]) == [
        "raft", "write=flexible:quorum=2", "weak_read=raft",
    ]  # fmt: skip


def test_the_command_takes_a_protocol_for_each_kind(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--protocol", "weak_read=follower-reads:fresh=0.7", "--protocol", "write=leases"]
    out = run(capsys, "solve", "world27", "--replicas", "4", "--voters", "3", *asked, "--json")
    said = json.loads(out)
    assert said["problem"]["protocol"] == "weak_read=follower-reads:fresh=0.7; write=leases"
    world27 = placement.load("world27")
    best = placement.solve(
        Problem(world27, replicas=4, voters=3,
                protocol={"weak_read": "follower-reads:fresh=0.7", "write": "leases"})
    )  # fmt: skip
    assert said["mean_latency_ms"] == best.mean_latency
    described = json.loads(run(capsys, "protocols", "weak_read=raft; write=leases", "--json"))
    assert described["kinds"] == {
        "weak_read": "raft", "write": "leases", "multi_write": "leases",
    }  # fmt: skip
    assert described["paths"]["write"]["waits"] == ["leader: quorum of voters + all of replicas"]
    assert (
        "After the loss of a lease holder writes stop until its lease ends."
        in (described["assumptions"])
    )


def test_a_loss_that_leaves_no_fast_quorum_slows_the_kinds_that_have_one() -> None:
    one = world(9)
    kinds = {
        "bounded_read": "epaxos:slow=0.2", "strong_read": "epaxos:slow=0.2",
        "write": "epaxos:multi=2", "weak_read": "raft",
    }  # fmt: skip
    problem = Problem(one, replicas=5, voters=5, protocol=kinds)
    whole = Problem(one, replicas=5, voters=5, protocol="epaxos:multi=2")
    assert problem.slow_demand is not None
    assert whole.slow_demand is not None
    # without a fast quorum every operation takes the slow path, whatever its share was before
    assert np.array_equal(problem.slow_demand.times, whole.slow_demand.times)
    plan: Plan = placement.solve(problem)
    assert plan.failures


# --- the protocol of an instance -----------------------------------------------------------------


@pytest.mark.parametrize(
    "protocol", ["leases:interference=0.2", "write=leases; weak_read=follower-reads:fresh=0.7"]
)
def test_an_instance_has_a_protocol_that_questions_take(tmp_path: Path, protocol: str) -> None:
    plain = world(40)
    one = plain.replace(protocol=protocol)
    assert one.protocol == Protocol(protocol)
    assert one != plain
    assert plain.fingerprint == world(40).fingerprint
    problem = Problem(one, replicas=3, voters=3)
    told = Problem(plain, replicas=3, voters=3, protocol=protocol)
    assert problem.protocol == told.protocol
    plan = placement.solve(problem)
    assert plan.score == placement.solve(told).score
    other = Problem(one, replicas=3, voters=3, protocol="raft")  # a question has the last word
    assert placement.solve(other).score == placement.solve(
        Problem(plain, replicas=3, voters=3, protocol="raft")
    ).score  # fmt: skip
    table = placement.compare_protocols(problem, ["raft", protocol])
    assert table["mean_latency"][1] == plan.mean_latency
    save_instance(one, tmp_path / "one")
    manifest = json.loads((tmp_path / "one" / "instance.json").read_text())
    assert manifest["version"] == 2
    assert manifest["protocol"] == str(Protocol(protocol))
    assert load_instance(tmp_path / "one") == one
    save_plan(plan, tmp_path / "plan.json")
    again = load_plan(tmp_path / "plan.json", check=True)
    assert again.problem.instance == one
    assert again.problem.protocol == problem.protocol
    seen = Problem(one, replicas=3, voters=3, witnesses=1)
    assert placement.solve(seen).score == pytest.approx(
        placement.solve(seen, "exhaustive").score, rel=1e-9
    )


def test_a_manifest_by_hand_names_a_protocol(tmp_path: Path) -> None:
    save_instance(world(41), tmp_path / "mine")
    folder = tmp_path / "mine"
    (folder / "instance.json").unlink()
    head = (
        'format = "replica-placement instance"\nversion = 2\nprotocol_here\n[tables]\n'
        'sites = "sites.csv"\nclient_rtt = "client_rtt.csv"\nsite_rtt = "site_rtt.csv"\n'
        'counts = "counts.csv"\n'
    )
    for given, expected in (
        ('protocol = "epaxos:slow=0.05"', "epaxos:slow=0.05"),
        ('[protocol]\nname = "atlas"\nf = 1\nslow = 0.02', "atlas:f=1,slow=0.02"),
        ('[protocol]\nname = "leases"\nholders = "voters"', "leases:holders=voters"),
        (
            '[protocol.kinds]\nwrite = "leases"\nweak_read = "follower-reads:fresh=0.7"',
            "weak_read=follower-reads:fresh=0.7; write=leases",
        ),
    ):
        (folder / "instance.toml").write_text(head.replace("protocol_here", given))
        assert str(load_instance(folder).protocol) == expected
    for given, said in (
        ('protocol = "rift"', ("unknown protocol", "raft")),
        ("protocol = 3", ("protocol",)),
        ('[protocol]\nname = "atlas"\ng = 1', ("no such parameter", "'g'")),
        ("[protocol]\nf = 1", ("name",)),
        ('[protocol]\nname = "atlas"\nf = true', ("f", "whole number")),
        ('[protocol]\nname = "raft"\n[protocol.kinds]\nwrite = "raft"', ("name",)),
        ('[protocol.kinds]\nwrites = "raft"', ("unknown kind", "multi_write")),
        ("[protocol.kinds]", ("no protocol",)),
        ("[protocol.kinds]\nwrite = 1", ("write",)),
        ('[protocol.kinds]\nwrite = "raft"\nstrong_read = "leases"', ("relies on", "write=leases")),
    ):
        (folder / "instance.toml").write_text(head.replace("protocol_here", given))
        with pytest.raises(InputError) as error:
            load_instance(folder)
        assert "instance.toml" in str(error.value), str(error.value)
        assert all(word in str(error.value) for word in said), str(error.value)
