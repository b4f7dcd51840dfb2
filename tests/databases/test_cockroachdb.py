"""CockroachDB: rules of the server on accepted and refused zones, and what SHOW prints."""

import pytest

from placement.databases import Localities, load_system
from placement.databases.findings import broken
from placement.databases.system import read_deployment
from placement.errors import InputError

SITES = ("a", "b", "c", "d")
SYSTEM = load_system("cockroachdb")


def read(text, name="app", **settings):
    request = SYSTEM.request(Localities.plain(SITES), name, settings)
    return read_deployment(SYSTEM, (("zones.sql", text),), request)


def zone(fields):
    return f"ALTER DATABASE app CONFIGURE ZONE USING {fields};"


ACCEPTED = [
    "num_replicas = 3",
    "num_replicas = 1",
    "num_replicas = 4, num_voters = 4",  # oddness is not enforced
    "num_replicas = 2, num_voters = 1",
    "num_replicas = 5, num_voters = 3, constraints = '{+region=a: 2, +region=b: 2, +region=c: 1}', "
    "voter_constraints = '{+region=a: 2, +region=b: 1}', lease_preferences = '[[+region=a]]'",
    "num_replicas = 3, constraints = '[+region=a]', lease_preferences = '[[+region=a]]'",
    "num_replicas = 3, constraints = '{\"+region=a\": 3}'",
    "num_replicas = 3, constraints = '[-region=d]'",
    "num_replicas = 3, num_voters = 3, voter_constraints = '[+region=a]'",
]
REFUSED = {
    "num_replicas = 0": "num-replicas",
    "num_replicas = 2": "num-replicas",
    "num_replicas = 3, num_voters = 2": "num-voters",
    "num_replicas = 3, num_voters = -1": "num-voters",
    "num_replicas = 3, num_voters = 5": "voters-exceed-replicas",
    "num_replicas = 3, constraints = '{+region=a: 0}'": "count",
    "num_replicas = 3, constraints = '{+region=a: 2, +region=b: 2}'": "too-many-constraints",
    "num_replicas = 5, num_voters = 3, voter_constraints = '{+region=a: 4}'": (
        "too-many-constraints"
    ),
    "num_replicas = 5, num_voters = 3, voter_constraints = '[-region=a]'": "voters-forbidden",
    "num_replicas = 5, voter_constraints = '{+region=a: 1}'": "voters-not-counted",
    "constraints = '{+region=a: 1}'": "replicas-not-counted",
    "num_replicas = 3, num_voters = 3, constraints = '{+region=a: 3}', "
    "lease_preferences = '[[+region=a]]'": "leases-need-constraints",
    "num_replicas = 3, lease_preferences = '[[+region=a]]'": "leases-need-constraints",
    "num_replicas = 5, num_voters = 3, constraints = '[-region=a]', "
    "voter_constraints = '{+region=a: 1}'": "contradiction",
    "num_replicas = 3, num_voters = 3, constraints = '{+region=a: 2}', "
    "voter_constraints = '{+region=b: 2}'": "unsatisfiable",
}


@pytest.mark.parametrize("fields", ACCEPTED)
def test_a_zone_that_the_server_accepts_is_not_broken(fields):
    assert not broken(read(zone(fields)).findings)


@pytest.mark.parametrize("fields", REFUSED)
def test_a_zone_that_the_server_refuses_is_broken_by_its_rule(fields):
    errors = {f.rule for f in read(zone(fields)).findings if f.severity == "error"}
    assert REFUSED[fields] in errors


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ("num_replicas = 3, constraints = '[+region=a=b]'", "constraints"),
        ("num_replicas = 3, constraints = '[region=a]'", "constraints"),
        ("num_replicas = 3, constraints = '{+region=a: x}'", "constraints"),
        ("num_replicas = 3, constraints = '[+region=nowhere]'", "nowhere"),
        ("num_replicas = 3, lease_preferences = '[+region=a]'", "lease_preferences"),
        ("num_replicas = 3, lease_preferences = '{a: b}'", "lease_preferences"),
        ("num_replicas = x", "num_replicas"),
        ("num_replicas = 3, num_replicas = 4", "num_replicas"),
    ],
)
def test_what_cannot_be_understood_names_file_and_field(fields, word):
    with pytest.raises(InputError, match=r"zones\.sql") as found:
        read(zone(fields))
    assert word in str(found.value)


SHOWN = """\
        target       |              raw_config_sql
---------------------+-------------------------------------------
  RANGE default      | ALTER RANGE default CONFIGURE ZONE USING
                     |     range_min_bytes = 134217728,
                     |     gc.ttlseconds = 14400,
                     |     num_replicas = 5,
                     |     constraints = '[]',
                     |     lease_preferences = '[]'
  DATABASE app       | ALTER DATABASE app CONFIGURE ZONE USING
                     |     constraints = '{+region=a: 2, +region=b: 2, +region=c: 1}',
                     |     lease_preferences = '[[+region=b], [+region=a]]'
  TABLE app.public.t | ALTER TABLE app.public.t CONFIGURE ZONE USING
                     |     lease_preferences = '[[+region=c]]'
(3 rows)
"""


def test_what_show_prints_is_read_with_what_a_zone_inherits():
    found = read(SHOWN).deployment
    assert found.voters_at == {"a": 2, "b": 2, "c": 1}
    assert found.leaders == ("b", "a")
    table = read(SHOWN, table="t").deployment
    assert table.voters_at == found.voters_at
    assert table.leaders == ("c",)


def test_the_same_as_csv_and_tsv():
    text = zone("num_replicas = 3, constraints = '{+region=a: 1, +region=b: 2}'").rstrip(";")
    for mark in (",", "\t"):
        shown = f'target{mark}raw_config_sql\nDATABASE app{mark}"{text}"\n'
        assert read(shown).deployment.voters_at == {"a": 1, "b": 2}


def test_a_file_of_several_zones_asks_which():
    with pytest.raises(InputError, match="DATABASE app"):
        read(SHOWN, name="")
    with pytest.raises(InputError, match="no such zone"):
        read(SHOWN, name="other")


def test_replicas_without_constraint_have_no_place():
    found = read(zone("num_replicas = 5, num_voters = 3, voter_constraints = '{+region=a: 2}'"))
    assert (found.deployment.free_voters, found.deployment.free_non_voters) == (1, 2)


def test_constraints_that_do_not_say_who_votes_are_reported():
    found = read(zone("num_replicas = 5, num_voters = 3, constraints = '{+region=a: 5}'"))
    assert "voters-without-place" in {f.rule for f in found.findings}
    assert found.deployment.free_voters == 3
