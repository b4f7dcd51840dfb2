"""Losses of a deployment whose places are partly open, against all placements that it allows."""

import itertools
import random

import pytest

import placement
from placement.databases import Deployment, Localities, OpenReplicas
from placement.databases.deployment import deployment_document, deployment_from
from placement.databases.deployment_value import evaluate_deployment
from placement.databases.findings import GOAL_OPEN, lint_deployment
from placement.errors import InputError
from placement.io.formats.document import Document
from placement.testing import random_instance

SITES = ("a", "b", "c", "d")


@pytest.fixture
def world():
    made = random_instance(3, sites=4, clients=3).replace(sites=SITES)
    return made.replace(domains={"country": ("x", "x", "y", None)})


def rules(deployment, world, **more):
    found = lint_deployment(deployment, world, Localities.plain(world.sites), **more)
    return {f.rule: f for f in found}


def random_open(rng):
    """Return a deployment with open replicas."""
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
def test_a_goal_is_missed_met_or_not_known_as_all_placements_say(seed, world):
    deployment = random_open(random.Random(seed))
    if not deployment.voters:
        return
    found = rules(deployment, world, survive="site")
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


def test_placed_voters_are_checked_though_others_are_free(world):
    most = Deployment.of("x", {"a": 3}, free_voters=2)
    assert rules(most, world)["loss-stops-writes"].severity == "warning"
    assert rules(most, world, survive="site")["survival-goal"].severity == "error"
    spread = Deployment.of("x", {"a": 1, "b": 1}, free_voters=1)
    assert rules(spread, world, survive="site")[GOAL_OPEN].severity == "warning"
    kept = Deployment.of(
        "x", {"a": 1, "b": 1}, free_voters=1, open=(OpenReplicas(("c", "d"), 1, "voter"),)
    )
    assert GOAL_OPEN not in rules(kept, world, survive="site")


def test_some_domain_may_hold_too_many_wherever_the_voters_are(world):
    """Five voters at two sites: one of these holds three."""
    two = Deployment.of("x", {}, free_voters=5, open=(OpenReplicas(("a", "c"), 5, "voter"),))
    found = rules(two, world, survive="site")
    assert found["survival-goal"].evidence.startswith("site a or c holds 3 of 5 voters")
    three = Deployment.of("x", {}, free_voters=3, open=(OpenReplicas(("a", "c", "d"), 3, "voter"),))
    assert "survival-goal" not in rules(three, world, survive="site")


def test_domains_are_looked_at_without_a_goal(world):
    found = rules(Deployment.of("x", {"a": 1, "b": 1, "c": 1}), world)
    assert "country x holds 2 of 3 voters" in found["loss-stops-writes"].evidence
    assert "loss-stops-writes" not in rules(Deployment.of("x", {"a": 1, "c": 1, "d": 1}), world)
    # the site is told; its country says nothing new
    alone = lint_deployment(Deployment.of("x", {"a": 2, "c": 1}), world, Localities.plain(SITES))
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
def test_a_store_without_a_leader_is_checked_too(world, held, read, write, everywhere, stopped):
    plain = world.replace(domains={})
    deployment = Deployment.of("x", held, read=read, commit=write, everywhere=everywhere)
    found = {rule for rule in rules(deployment, plain) if rule.startswith("loss-")}
    assert found == stopped
    assert ("survival-goal" in rules(deployment, plain, survive="site")) == bool(stopped)


def test_commits_and_elections_are_two_things(world):
    """Two of five votes commit, so that four elect: one loss of two ends the elections alone."""
    plain = world.replace(domains={})
    found = rules(Deployment.of("x", {"a": 2, "b": 2, "c": 1}, commit=2), plain)
    assert "the choice of a leader needs 4" in found["loss-stops-writes"].evidence
    led = Deployment.of("x", {"a": 2, "b": 2, "c": 1}, commit=2, leaders=("c",))
    assert "loss-stops-writes" not in rules(led, plain)


def test_preferences_are_impossible_possible_or_sure(world):
    free = Deployment.of("x", {"b": 2}, free_voters=1, leaders=("a",))
    assert rules(free, world)["preference-not-guaranteed"].severity == "warning"
    only = Deployment.of(
        "x", {}, free_voters=3, leaders=("a",), open=(OpenReplicas(("b", "c"), 3, "voter"),)
    )
    assert rules(only, world)["preference-without-voter"].severity == "error"
    sure = rules(Deployment.of("x", {"a": 1, "b": 1, "c": 1}, leaders=("a",)), world)
    assert not {"preference-not-guaranteed", "preference-without-voter"} & set(sure)


def test_equal_preferences_are_said_and_the_worse_is_evaluated(world):
    tie = Deployment.of("x", {"a": 1, "b": 1, "c": 1}, leaders=("c", "a", "b"), ranks=(2, 1, 1))
    assert tie.tiers == (("a", "b"), ("c",))
    assert tie.order == "a or b, c"
    assert Deployment.of("x", {"a": 1}, leaders=("a",), ranks=(5,)).ranks == ()
    value = evaluate_deployment(tie, world)
    alone = [
        evaluate_deployment(Deployment.of("x", tie.voters_at, leaders=(one,)), world).plan
        for one in ("a", "b")
    ]
    assert value.plan.mean_latency == max(one.mean_latency for one in alone)
    assert {name for name, _ in value.leaders} == {"a", "b"}
    assert placement.Status.OPTIMAL is value.best.status


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
