"""TiDB and PD: policies and rules as they are written by people and servers."""

import pytest

from placement.databases import Deployment, Localities, load_system
from placement.databases.system import read_deployment, write_deployment
from placement.errors import InputError, UnsupportedError

SITES = ("a", "b", "c", "d")
SHOWN = r"""
+---------+------------------------------------------------------------------------------+
| Policy  | Create Policy                                                                |
+---------+------------------------------------------------------------------------------+
| p_users | CREATE PLACEMENT POLICY `p_users` LEADER_CONSTRAINTS="[+region=a]" FOLLOWER_CONSTRAINTS="{+region=a: 1, \"+region=b,#evict-leader\": 2, +region=c: 1}" LEARNERS=1 LEARNER_CONSTRAINTS="[+region=d]" SURVIVAL_PREFERENCES="[region, zone]" |
+---------+------------------------------------------------------------------------------+
1 row in set
"""  # noqa: E501


def read(name, text, database="", **settings):
    system = load_system(name)
    request = system.request(Localities.plain(SITES), database, settings)
    return read_deployment(system, (("policy.txt", text),), request)


def policy(options):
    return read("tidb", f"CREATE PLACEMENT POLICY p {options};")


def test_what_show_prints():
    found = read("tidb", SHOWN).deployment
    assert found.voters_at == {"a": 2, "b": 2, "c": 1}
    assert found.non_voters_at == {"d": 1}
    assert (found.leaders, found.name) == (("a",), "p_users")
    assert not read("tidb", SHOWN).findings


@pytest.mark.parametrize(
    ("options", "held", "free"),
    [
        ("PRIMARY_REGION='a' REGIONS='a,b'", {"a": 2, "b": 1}, 0),
        ("PRIMARY_REGION='a' REGIONS='a, b, c' FOLLOWERS=4", {"a": 2}, 3),
        (
            "PRIMARY_REGION='a' REGIONS='a,b,c' SCHEDULE='MAJORITY_IN_PRIMARY' FOLLOWERS=4",
            {"a": 3},
            2,
        ),
        ("PRIMARY_REGION='a' REGIONS='a'", {"a": 3}, 0),
        ("CONSTRAINTS='[+region=a]' FOLLOWERS=4", {"a": 5}, 0),
        ("LEADER_CONSTRAINTS='[+region=b]'", {"b": 1}, 2),
        ("FOLLOWERS=4", {}, 5),
    ],
)
def test_short_forms(options, held, free):
    found = policy(options).deployment
    assert (found.voters_at, found.free_voters) == (held, free)


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ("PRIMARY_REGION='a' REGIONS='a,b' LEARNERS=1", "two-forms"),
        ("PRIMARY_REGION='c' REGIONS='a,b'", "primary-not-in-regions"),
        ("FOLLOWERS=9", "followers"),
        ("LEADER_CONSTRAINTS='{+region=a: 1}' FOLLOWERS=2", "leader-counted"),
        ("LEADER_CONSTRAINTS='[+region=a]' FOLLOWER_CONSTRAINTS='{+region=b: 0}'", "count"),
        ("FOLLOWERS=3 FOLLOWER_CONSTRAINTS='{+region=b: 2}'", "counts-differ"),
        ("FOLLOWER_CONSTRAINTS='{+region=b: 9}'", "followers"),
    ],
)
def test_rules_of_the_server(options, rule):
    assert rule in {f.rule for f in policy(options).findings if f.severity == "error"}


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ("SURVIVAL_PREFERENCE='[region]'", "SURVIVAL_PREFERENCE"),  # a singular of some pages
        ("VOTERS=3", "VOTERS"),
        ("LEADER_CONSTRAINTS='[+ssd]'", "LEADER_CONSTRAINTS"),
        ("FOLLOWERS=x", "FOLLOWERS"),
        ("FOLLOWER_CONSTRAINTS='{+region=b: --2}'", "FOLLOWER_CONSTRAINTS"),
        (f"FOLLOWER_CONSTRAINTS='{{+region=b: {'9' * 5000}}}'", "FOLLOWER_CONSTRAINTS"),
        ("FOLLOWERS=1 FOLLOWERS=2", "FOLLOWERS"),
        ("PRIMARY_REGION='a' REGIONS='a,b' SCHEDULE='ODD'", "SCHEDULE"),
        ("LEADER_CONSTRAINTS='[+region=x]'", "LEADER_CONSTRAINTS"),
    ],
)
def test_bad_options_name_file_and_field(options, word):
    with pytest.raises(InputError, match=r"policy\.txt") as found:
        policy(options)
    assert word in str(found.value)


@pytest.mark.parametrize(
    ("deployment", "word"),
    [
        (Deployment.of("x", {"a": 3}), "name the leader"),
        (Deployment.of("x", {"a": 1}, leaders=("a",)), "two or more"),
        (Deployment.of("x", {"a": 5, "b": 5}, leaders=("a",)), "8 followers"),
    ],
)
def test_what_a_policy_cannot_say(deployment, word):
    system = load_system("tidb")
    with pytest.raises(UnsupportedError, match=word):
        write_deployment(system, deployment, system.request(Localities.plain(SITES), "p"))
