"""Deployments, open ones too: localities, findings, values, losses and moves."""

import itertools
import random
from dataclasses import replace

import numpy as np
import pytest

import placement
from placement.databases import Deployment, Localities, Locality, Member
from placement.databases.deployment import (
    OpenReplicas,
    SiteReplicas,
    deployment_document,
    deployment_from,
    deployment_of_plan,
)
from placement.databases.deployment_value import evaluate_deployment
from placement.databases.findings import GOAL_OPEN, broken, lint_deployment
from placement.databases.localities import load_localities
from placement.databases.servers import path_between
from placement.databases.texts import check_keys
from placement.errors import InputError, UnsupportedError
from placement.io.formats.document import Document
from placement.model.changed_instance import with_copies
from placement.testing import random_instance


@pytest.fixture
def world():
    return random_instance(4, sites=5, clients=4)


def _with(commit=None, least=None, **roles):
    """Return a deployment of one voter at each of a, b and c, with roles, led from a."""
    held = tuple(SiteReplicas(s, 1, 0, ((roles[s], 1),) if s in roles else ()) for s in "abc")
    return Deployment("x", held, ("a",), commit, least=least)


def rules(deployment, world, **more):
    names = more.pop("localities", Localities.plain(world.sites))
    return {f.rule: f for f in lint_deployment(deployment, world, names, **more)}


def test_a_plan_becomes_a_deployment_with_its_failover_order(world):
    plan = placement.solve(placement.Problem(world, replicas=4, voters=3))
    found = deployment_of_plan(plan)
    assert found.leaders[0] == plan.leader
    assert set(found.leaders) == set(plan.voters)
    assert found.leaders[1:] == tuple(name for name, _ in plan.failures.failover)
    assert found.replicas == 4
    value = evaluate_deployment(found, world)
    assert value.plan.mean_latency == plan.mean_latency
    assert value.excess == 0
    assert value.best.status is placement.Status.OPTIMAL


def test_copies_of_a_site_are_evaluated_as_one_place(world):
    """Two voters at the leader's site of three: a commit waits for nobody else."""
    a, b = world.sites[:2]
    value = evaluate_deployment(Deployment.of("x", {a: 2, b: 1}, leaders=(a,)), world)
    alone = placement.evaluate(
        placement.Problem(world, replicas=2, voters=2, quorum=1),
        leader=a, voters=[a, b], replicas=[a, b],
    )  # fmt: skip
    assert value.plan.mean_latency == pytest.approx(alone.mean_latency)
    assert value.copies == 2
    stops = {loss.lost for loss in value.losses.each if not loss.survives}
    assert stops == {a}  # a loss is that of the place, with both copies
    held = list(value.best.problem.instance.domains["place"])
    assert held == [name for name in world.sites for _ in range(2)]


def stops(value):
    return {row.lost for row in value.losses.each if not row.survives}


def test_an_arbiter_is_no_replica_of_the_evaluation(world):
    """Votes of an arbiter elect, and acknowledge nothing."""
    a, b, c = world.sites[:3]
    arbiter = SiteReplicas(c, 1, 0, (("arbiter", 1),))
    held = (SiteReplicas(a, 1), SiteReplicas(b, 1))
    value = evaluate_deployment(Deployment("x", (*held, arbiter), (a,)), world, survive="site")
    pair = evaluate_deployment(Deployment("x", held, (a,)), world)
    assert value.plan.mean_latency == pair.plan.mean_latency
    assert value.best.mean_latency >= pair.best.mean_latency
    assert stops(value) == {a, b}  # the votes elect, and no majority acknowledges
    assert len(value.reasons) == 2
    assert not any(words == f"lead from {c}" for words, _ in value.moves)


def test_the_next_leader_is_one_that_may_lead_and_the_preferred_one(world):
    a, b, c = world.sites[:3]
    order = (a, c, b)
    value = evaluate_deployment(Deployment.of("x", {a: 1, b: 1, c: 1}, leaders=order), world)
    assert {row.lost: row.leader for row in value.losses.each} == {a: c, b: a, c: a}
    follower = tuple(
        SiteReplicas(site, 1, 0, (("follower", 1),) if site == c else ()) for site in (a, b, c)
    )
    value = evaluate_deployment(Deployment("x", follower, (a,)), world)
    assert {row.lost: row.leader for row in value.losses.each}[a] == b
    assert c not in {name for name, _ in value.leaders}
    assert value.best.leader != c


def test_of_equal_leaders_the_worst_is_shown(world):
    a, b, c = world.sites[:3]
    alone = {
        site: evaluate_deployment(Deployment.of("x", {a: 1, b: 1, c: 1}, leaders=(site,)), world)
        for site in (a, b, c)
    }
    for leaders, ranks, able in (((a, b, c), (1, 1, 2), (a, b)), ((), (), (a, b, c))):
        tied = Deployment.of("x", {a: 1, b: 1, c: 1}, leaders=leaders, ranks=ranks)
        value = evaluate_deployment(tied, world)
        assert value.plan.mean_latency == max(alone[site].plan.mean_latency for site in able)
        assert {name for name, _ in value.leaders} == set(able)
    void = Deployment.of("x", {a: 1, b: 1, c: 1}, leaders=(a, b, c), order_void=True)
    after = next(row for row in evaluate_deployment(void, world).losses.each if row.lost == a)
    both = [
        next(row for row in evaluate_deployment(one, world).losses.each if row.lost == a)
        for one in (
            replace(void, order_void=False),
            replace(void, leaders=(a, c, b), order_void=False),
        )
    ]
    assert after.mean_latency == max(row.mean_latency for row in both)


def test_commits_and_elections_are_two_quorums(world):
    a, b, c = world.sites[:3]
    two = Deployment.of("x", {a: 2, b: 2}, leaders=(a,), commit=2)
    assert stops(evaluate_deployment(two, world)) == {a}
    adapts = Deployment.of("x", {a: 1, b: 1}, leaders=(a,), least=1)
    value = evaluate_deployment(adapts, world, survive="site")
    assert (stops(value), value.reasons) == (set(), ())
    alone = evaluate_deployment(Deployment.of("x", {a: 1}, leaders=(a,)), world)
    after = next(row for row in value.losses.each if row.lost == b)
    assert after.mean_latency == pytest.approx(alone.plan.mean_latency)
    spare = (SiteReplicas(a, 1), SiteReplicas(b, 1), SiteReplicas(c, 1, 0, (("spare", 1),)))
    chosen = Deployment("x", spare, (a,), commit=2, least=1)
    after = {row.lost: row.leader for row in evaluate_deployment(chosen, world).losses.each}
    assert after == {a: b, b: a, c: a}


def test_rules_about_sites_hold_for_the_copies_too(world):
    a, b = world.sites[:2]
    deployment = Deployment.of("x", {a: 2, b: 1}, leaders=(a,))
    value = evaluate_deployment(deployment, world, survive="site", forbidden=[b])
    assert any("survive" in reason for reason in value.reasons)
    homes = value.best.problem.instance.domains["place"]
    index = {name: i for i, name in enumerate(value.best.problem.instance.sites)}
    voting = [homes[index[name]] for name in value.best.voters]
    assert len(set(voting)) == 3
    assert b not in voting


def test_changes_are_scored_and_fall(world):
    a, b, c = world.sites[:3]
    value = evaluate_deployment(Deployment.of("x", {a: 1, b: 1, c: 1}), world)
    numbers = [value.plan.mean_latency, *(ms for _, ms in value.moves)]
    assert numbers == sorted(numbers, reverse=True)
    assert value.best.mean_latency <= numbers[-1] * (1 + 1e-9)
    assert (value.excess < 1e-9) == (not value.moves)


@pytest.mark.parametrize(
    "deployment",
    [
        Deployment.of("x", {"s0": 1}, read=1, commit=1),
        Deployment.of("x", {}, {"s0": 1}, free_voters=3),
        Deployment.of("x", {"s0": 1}, leaders=("s1",), free_non_voters=1),
        Deployment.of("x", {}, {"s0": 1}),
        Deployment.of("x", {"s0": 1}, commit=2),
        Deployment.of("x", {"s0": 1}, {"s1": 1}, leaders=("s1",)),
    ],
)
def test_what_has_no_value_is_refused_with_the_reason(deployment):
    world = random_instance(1, sites=3, clients=2)
    named = world.replace(sites=("s0", "s1", "s2"))
    with pytest.raises(UnsupportedError):
        evaluate_deployment(deployment, named)


@pytest.mark.parametrize("pool", [(), (2, 3, 4)], ids=["anywhere", "among three"])
def test_replicas_without_a_place_bound_the_latency(world, pool):
    """Every place that they may get gives a latency and losses within what is said."""
    direct = np.array([not operation.relay for operation in world.operations])
    world = world.replace(counts=world.counts * direct)
    a, b, *_ = world.sites
    able = tuple(world.sites[i] for i in pool or range(5))
    fixed = {"leaders": (a,), "commit": 2}
    pools = (OpenReplicas(able, 1, "voter"),) if pool else ()
    value = evaluate_deployment(
        Deployment.of("x", {a: 1, b: 1}, free_voters=1, open=pools, **fixed), world
    )
    assert value.is_limit
    rows = {row.lost: row for row in value.losses.each}
    unknown = value.open[1].partition("loss of site ")[2].split(", ")
    assert a in unknown
    assert b in {*rows, *unknown}
    for site in able:
        votes = {a: 1, b: 1}
        votes[site] = votes.get(site, 0) + 1
        placed = evaluate_deployment(Deployment.of("x", votes, **fixed), world)
        assert placed.plan.mean_latency <= value.plan.mean_latency * (1 + 1e-12)
        for row in placed.losses.each:
            shown = rows.get(row.lost)
            if shown is not None:
                assert row.survives >= shown.survives
                assert row.mean_latency <= shown.mean_latency * (1 + 1e-12)


def test_regions_of_a_cloud_have_the_names_of_its_programs():
    """The first run of the README's export wrote a template and ended with an error."""
    names = load_localities(None, ("East US 2", "us-east-1", "here"))
    assert names.only("East US 2").name == "eastus2"
    assert names.only("us-east-1").name == "us-east-1"
    assert {names.site_of(one, "f", "x") for one in ("eastus2", "East US 2")} == {"East US 2"}


def test_prices_of_copies_add_up(world):
    prices = placement.Prices(np.arange(1.0, 6.0))
    priced = world.replace(prices=prices)
    a, b = world.sites[:2]
    value = evaluate_deployment(Deployment.of("x", {a: 2, b: 1}, leaders=(a,)), priced)
    assert value.plan.cost == 2 * 1 + 2
    assert with_copies(priced, 1) is priced


def test_findings_about_numbers(world):
    a, b, c, d = world.sites[:4]
    assert "no-voter" in rules(Deployment.of("x", {}, {a: 1}), world)
    even = rules(Deployment.of("x", {a: 1, b: 1, c: 1, d: 1}), world)
    assert "even-voters" in even
    assert not broken(even.values())
    assert "even-voters" not in rules(Deployment.of("x", {a: 1, b: 1, c: 1}), world)
    found = rules(Deployment.of("x", {a: 1}, {b: 1}, leaders=(b,)), world)
    assert found["preference-without-voter"].severity == "error"
    assert rules(Deployment.of("x", {a: 1}, commit=2), world)["quorum-too-large"]
    assert "stale-reads" in rules(Deployment.of("x", {a: 3}, read=1, commit=2), world)
    assert "stale-reads" not in rules(Deployment.of("x", {a: 3}, read=2, commit=2), world)
    assert "free-replicas" in rules(Deployment.of("x", {a: 1}, free_voters=2), world)


def test_findings_about_losses(world):
    a, b, c = world.sites[:3]
    two = rules(Deployment.of("x", {a: 2, b: 2}), world)
    assert two["loss-stops-writes"].severity == "warning"
    assert "5 voters" in two["arbiter-helps"].evidence
    bad = rules(Deployment.of("x", {a: 2, b: 1}), world, survive="site")
    assert bad["survival-goal"].severity == "error"
    good = rules(Deployment.of("x", {a: 1, b: 1, c: 1}), world, survive="site")
    assert "survival-goal" not in good  # yet two of them stand with one provider
    assert "provider" in good["loss-stops-writes"].evidence
    # three of five at one site: a sixth voter elsewhere changes nothing
    assert "arbiter-helps" not in rules(Deployment.of("x", {a: 3, b: 2}), world)


def test_more_replicas_than_nodes(world):
    a = world.sites[0]
    names = Localities(world.sites, (Locality("dc", a, {"nodes": "2"}),))
    found = rules(Deployment.of("x", {a: 3}), world, localities=names)
    assert found["too-few-nodes"].severity == "error"
    assert "too-few-nodes" not in rules(Deployment.of("x", {a: 2}), world, localities=names)


def test_documents_are_read_as_they_were_written():
    one = Deployment.of(
        "x", {"a": 2}, {"b": 1}, leaders=("a",), commit=1, name="n", free_voters=1,
        members=(Member("m", "a", True, "1f", "http://m"),),
    )  # fmt: skip
    zones = (SiteReplicas("a1", 1), SiteReplicas("a2", 1))
    two = Deployment(
        "x", (SiteReplicas("a", 3, 1, (("arbiter", 1), ("unread", 1)), zones),), ("a", "b"),
        ranks=(1, 1), order_void=True, elect=3, least=1, kept="{}",
        members=(Member("m", "a", True, role="arbiter", kept={"tags": {"k": "v"}}),),
    )  # fmt: skip
    for deployment in (one, two):
        assert (
            deployment_from(Document("f.json", "", deployment_document(deployment))) == deployment
        )
    for key, value in (("sites", 3), ("leaders", "a"), ("commit", 0), ("version", 9), ("x", 1)):
        with pytest.raises(InputError, match=r"f\.json"):
            deployment_from(Document("f.json", "", {**deployment_document(one), key: value}))


@pytest.mark.parametrize(
    ("site", "word"),
    [
        (("a", 1, 0, (("king", 1),)), "unknown role"),
        (("a", 1, 0, (("arbiter", 2),)), "arbiter"),
        (("a", 2, 0, (("arbiter", 2), ("hidden", 1))), "more roles"),
        (("a", 1, 0, (("unread", 1),)), "unread"),
        (("a", 1, 0, (), (SiteReplicas("z", 2),)), "voters of zones"),
    ],
)
def test_roles_and_zones_are_a_part_of_the_site(site, word):
    with pytest.raises(InputError, match=word):
        SiteReplicas(*site)


@pytest.mark.parametrize(
    ("deployment", "lost", "word"),
    [
        # 2 of 4: the leader and one voter are enough to commit, three choose the next leader
        (Deployment.of("x", {"a": 2, "b": 2}, leaders=("a",), commit=2), "b", ""),
        (Deployment.of("x", {"a": 2, "b": 2}, leaders=("a",), commit=2), "a", "needs 3"),
        (Deployment.of("x", {"a": 1, "b": 1, "c": 1}, leaders=("a",)), "a", ""),
        # an arbiter elects, and acknowledges nothing
        (_with(c="arbiter"), "b", "1 of 3 voters acknowledge"),
        (_with(c="arbiter"), "c", ""),
        (_with(b="follower", c="arbiter"), "a", "may lead"),
        (_with(b="follower", c="witness"), "b", ""),
        # the quorum falls; the chosen standby alone may take over
        (_with(c="spare", commit=2, least=1), "b", ""),
        (_with(c="spare", commit=2, least=1), "a", ""),
        (_with(b="follower", c="spare", commit=2, least=1), "a", "may lead"),
    ],
)
def test_outages(deployment, lost, word):
    """By hand: a commit and an election are two quorums."""
    found = deployment.outage({lost}, "a")
    assert (word in found) if word else not found


def test_keys_are_used_ignored_or_refused():
    def check(values):
        check_keys(Document("f", "t", values), ("a", "b"), ("c",), {"d": (False, 0), "e": ()})

    for good in ({}, {"a": 1, "c": 2}, {"d": False}, {"d": 0, "e": None}):
        check(good)
    for key, value in (("x", 1), ("d", True), ("d", 1), ("d", ""), ("e", False)):
        with pytest.raises(InputError, match=rf"f: t\.{key}: .*key"):
            check({key: value})


def test_differences_are_sentences():
    one = Deployment.of("x", {"a": 2, "b": 1}, leaders=("a",))
    other = Deployment.of("x", {"a": 1, "b": 1}, {"c": 1}, leaders=("b",), commit=1)
    assert one.differences(one) == ()
    assert one.differences(other) == (
        "a: voters 2 -> 1", "c: non-voters 0 -> 1", "leaders: a -> b", "commit: majority -> 1",
    )  # fmt: skip


def test_steps_keep_replicas_that_stay():
    before = Deployment.of("x", {"a": 2, "b": 1}, {"c": 1}, leaders=("a",))
    steps = path_between(before, before).steps
    assert steps == ()
    after = Deployment.of("x", {"a": 1, "b": 1, "c": 1}, leaders=("c",))
    kinds = [(step.kind, str(step.replica)) for step in path_between(before, after).steps]
    assert kinds[0] == ("promote", "c")
    assert ("move-leader", "c") in kinds
    assert kinds[-1] == ("remove", "a (replica 2)")
    assert all(len(step.voting) >= 3 for step in path_between(before, after).steps)


def test_localities_by_table_and_by_object(tmp_path):
    (tmp_path / "l.csv").write_text("locality,site,nodes,zone\nr1,a,3,r1a\nr2,b,,\n")
    found = load_localities(tmp_path / "l.csv", ("a", "b", "c"))
    assert found.site_of("r1", "f", "x") == "a"
    assert found.site_of("c", "f", "x") == "c"
    assert found.nodes("a") == 3
    assert found.nodes("b") is None
    assert dict(found.only("a").facts) == {"nodes": "3", "zone": "r1a"}
    with pytest.raises(InputError, match=r"f: x: no site.*did you mean 'r1'"):
        found.site_of("r11", "f", "x")
    with pytest.raises(InputError):
        found.site_of("a", "f", "x")  # it has another name in the database
    (tmp_path / "l.json").write_text('{"r1": "a"}')
    assert load_localities(tmp_path / "l.json", ("a",)).site_of("r1", "f", "x") == "a"
    bad = {
        "locality,site\nr,zz\n": "unknown site",
        "locality,site\nr,a\nr,b\n": "twice",
        "x,site\nr,a\n": "locality",
    }
    for text, word in bad.items():
        (tmp_path / "l.csv").write_text(text)
        with pytest.raises(InputError, match=word) as error:
            load_localities(tmp_path / "l.csv", ("a", "b"))
        assert "l.csv" in str(error.value)


SITES = ("a", "b", "c", "d")


@pytest.fixture
def four():
    made = random_instance(3, sites=4, clients=3).replace(sites=SITES)
    return made.replace(domains={"country": ("x", "x", "y", None)})


def random_open(rng):
    held = {site: rng.randint(0, 2) for site in SITES}
    pools = []
    for _ in range(rng.randint(0, 2)):
        sites = tuple(rng.sample(SITES, rng.randint(0, 3)))
        pools.append(OpenReplicas(sites, 1, rng.choice(("voter", "non-voter", "either"))))
    rest, either = rng.randint(0, 1), sum(one.role == "either" for one in pools) + 1
    votes = sum(one.role == "voter" for one in pools)
    others = sum(one.role == "non-voter" for one in pools)
    some = rng.randint(0, either - 1 + rest)
    return Deployment.of(
        "x", held, {"a": 1}, open=tuple(pools), free_voters=votes + some,
        free_non_voters=others + either - 1 + rest - some,
    )  # fmt: skip


def placements(deployment):
    """Yield the voters by site of every way to place the open replicas."""
    slots = [one for one in deployment.open for _ in range(one.replicas)]
    left = deployment.free_voters + deployment.free_non_voters - len(slots)
    slots += [OpenReplicas((), 1)] * left
    for sites in itertools.product(*(one.sites or SITES for one in slots)):
        for votes in itertools.product(*(
            {"voter": (1,), "non-voter": (0,), "either": (0, 1)}[one.role] for one in slots
        )):  # fmt: skip
            if sum(votes) == deployment.free_voters:
                held = dict.fromkeys(SITES, 0) | deployment.voters_at
                for site, vote in zip(sites, votes, strict=True):
                    held[site] += vote
                yield held


@pytest.mark.parametrize("seed", range(60))
def test_votes_of_a_group_are_those_of_all_placements(seed):
    rng = random.Random(seed)
    deployment = random_open(rng)
    group = set(rng.sample(SITES, rng.randint(1, 3)))
    found = [sum(held[site] for site in group) for held in placements(deployment)]
    assert deployment.votes_within(group, SITES) == (min(found), max(found))


@pytest.mark.parametrize("seed", range(40))
def test_a_goal_is_missed_met_or_not_known_as_all_placements_say(seed, four):
    deployment = random_open(random.Random(seed))
    if not deployment.voters:
        return
    found = rules(deployment, four, survive="site")
    needed = max(deployment.quorum, deployment.voters - deployment.quorum + 1)
    lost = {
        site: {deployment.voters - held[site] < needed for held in placements(deployment)}
        for site in SITES
    }
    always = all(
        any(deployment.voters - held[site] < needed for site in SITES)
        for held in placements(deployment)
    )
    if any(words == {True} for words in lost.values()):
        assert "survival-goal" in found
    assert always or "survival-goal" not in found
    assert (GOAL_OPEN in found) == any(len(words) == 2 for words in lost.values())


def test_placed_voters_are_checked_though_others_are_free(four):
    most = Deployment.of("x", {"a": 3}, free_voters=2)
    assert rules(most, four)["loss-stops-writes"].severity == "warning"
    assert rules(most, four, survive="site")["survival-goal"].severity == "error"
    spread = Deployment.of("x", {"a": 1, "b": 1}, free_voters=1)
    assert rules(spread, four, survive="site")[GOAL_OPEN].severity == "warning"
    kept = Deployment.of(
        "x", {"a": 1, "b": 1}, free_voters=1, open=(OpenReplicas(("c", "d"), 1, "voter"),)
    )
    assert GOAL_OPEN not in rules(kept, four, survive="site")


def test_some_domain_may_hold_too_many_wherever_the_voters_are(four):
    """Five voters at two sites: one of these holds three."""
    two = Deployment.of("x", {}, free_voters=5, open=(OpenReplicas(("a", "c"), 5, "voter"),))
    found = rules(two, four, survive="site")
    assert found["survival-goal"].evidence.startswith("site a or c holds 3 of 5 voters")
    three = Deployment.of("x", {}, free_voters=3, open=(OpenReplicas(("a", "c", "d"), 3, "voter"),))
    assert "survival-goal" not in rules(three, four, survive="site")


def test_domains_are_looked_at_without_a_goal(four):
    found = rules(Deployment.of("x", {"a": 1, "b": 1, "c": 1}), four)
    assert "country x holds 2 of 3 voters" in found["loss-stops-writes"].evidence
    assert "loss-stops-writes" not in rules(Deployment.of("x", {"a": 1, "c": 1, "d": 1}), four)
    # the site is told; its country says nothing new
    alone = lint_deployment(Deployment.of("x", {"a": 2, "c": 1}), four, Localities.plain(SITES))
    assert [f.rule for f in alone].count("loss-stops-writes") == 1


@pytest.mark.parametrize(
    ("held", "read", "write", "everywhere", "stopped"),
    [
        ({"a": 3, "b": 3}, 4, 4, (), {"loss-stops-writes"}),
        ({"a": 3, "b": 3}, 4, 1, (), {"loss-stops-reads"}),
        ({"a": 2, "b": 2, "c": 2}, 4, 4, (), set()),
        ({"a": 3, "b": 3, "c": 3}, 1, 6, (), set()),
        ({"a": 3, "b": 3, "c": 3}, 1, 6, ("writes",), {"loss-stops-writes"}),
    ],
)
def test_a_store_without_a_leader_is_checked_too(four, held, read, write, everywhere, stopped):
    plain = four.replace(domains={})
    deployment = Deployment.of("x", held, read=read, commit=write, everywhere=everywhere)
    found = {rule for rule in rules(deployment, plain) if rule.startswith("loss-")}
    assert found == stopped
    assert ("survival-goal" in rules(deployment, plain, survive="site")) == bool(stopped)


def test_commits_and_elections_are_two_things(four):
    """Two of five votes commit, so that four elect: one loss of two ends the elections alone."""
    plain = four.replace(domains={})
    found = rules(Deployment.of("x", {"a": 2, "b": 2, "c": 1}, commit=2), plain)
    assert "the choice of a leader needs 4" in found["loss-stops-writes"].evidence
    led = Deployment.of("x", {"a": 2, "b": 2, "c": 1}, commit=2, leaders=("c",))
    assert "loss-stops-writes" not in rules(led, plain)


def test_preferences_are_impossible_possible_or_sure(four):
    free = Deployment.of("x", {"b": 2}, free_voters=1, leaders=("a",))
    assert rules(free, four)["preference-not-guaranteed"].severity == "warning"
    only = Deployment.of(
        "x", {}, free_voters=3, leaders=("a",), open=(OpenReplicas(("b", "c"), 3, "voter"),)
    )
    assert rules(only, four)["preference-without-voter"].severity == "error"
    sure = rules(Deployment.of("x", {"a": 1, "b": 1, "c": 1}, leaders=("a",)), four)
    assert not {"preference-not-guaranteed", "preference-without-voter"} & set(sure)


def test_equal_preferences_are_said():
    tie = Deployment.of("x", {"a": 1, "b": 1, "c": 1}, leaders=("c", "a", "b"), ranks=(2, 1, 1))
    assert tie.tiers == (("a", "b"), ("c",))
    assert tie.order == "a or b, c"
    assert Deployment.of("x", {"a": 1}, leaders=("a",), ranks=(5,)).ranks == ()


def test_open_replicas_are_written_and_read():
    one = Deployment.of(
        "x", {"a": 2}, leaders=("a", "b"), ranks=(1, 1), free_voters=2, kept="ALTER …",
        open=(OpenReplicas(("c", "b"), 1, "voter"),), everywhere=(),
    )  # fmt: skip
    assert deployment_from(Document("f.json", "", deployment_document(one))) == one
    for key, value in (("ranks", [1]), ("ranks", "a"), ("open", [{"sites": [], "replicas": 9}])):
        with pytest.raises(InputError, match=r"f\.json"):
            deployment_from(Document("f.json", "", {**deployment_document(one), key: value}))
    with pytest.raises(InputError, match="open"):
        Deployment.of("x", {"a": 1}, open=(OpenReplicas(("b",), 1, "voter"),))
