"""Parsers of CockroachDB (v25.2) and TiDB, and memefish for the statement of Spanner."""

import json

import pytest

from placement.databases import Deployment, load_system
from tests.databases.real.texts import PLAIN, hostile, plans, written
from tests.databases.real.tools import go_program, parsed
from tests.databases.worlds import localities

pytestmark = pytest.mark.databases

FIRST_WORDS = {"cockroachdb": ("ALTER", "SHOW"), "tidb": ("CREATE", "SHOW"), "spanner": ("ALTER",)}
"""First words of the statements of an export."""

WRONG = {
    "cockroachdb": [
        "ALTER DATABASE us-east CONFIGURE ZONE USING num_replicas = 3",
        "ALTER DATABASE 'x",
    ],
    "tidb": [
        "CREATE PLACEMENT POLICY p SURVIVAL_PREFERENCE='[region]'",
        "CREATE PLACEMENT POLICY p FOLLOWERS=0",
        "CREATE PLACEMENT POLICY us-east FOLLOWERS=2",
    ],
    "spanner": [
        "ALTER DATABASE us-east SET OPTIONS (default_leader = 'x')",
        "ALTER DATABASE `a` SET x",
    ],
}


def statements(name, texts):
    """Return the statements of texts; those of Spanner stand in a document."""
    if name != "spanner":
        return texts
    return [";\n".join(json.loads(text)["statements"]) for text in texts]


@pytest.mark.parametrize(("name", "least"), [("cockroachdb", 500), ("tidb", 200), ("spanner", 40)])
def test_every_plan_is_statements_that_format_back_to_themselves(name, least):
    texts = statements(name, plans(name, 2000))
    assert len(texts) > least
    program = go_program(name)
    answers = parsed(program, texts)
    assert {answer["count"] for answer in answers} == {len(FIRST_WORDS[name])}
    again = parsed(program, [";\n".join(answer["formatted"]) for answer in answers])
    assert [answer["formatted"] for answer in again] == [one["formatted"] for one in answers]


# Spanner's own rule for names leaves few of the hostile ones
@pytest.mark.parametrize(
    ("name", "least", "most", "options"),
    [
        ("cockroachdb", 3500, 4000, {}),
        ("tidb", 3500, 4000, {}),
        ("spanner", 0, 399, {"voters": {"us-east-1": 3}}),
    ],
)
def test_hostile_names_never_become_another_statement(name, least, most, options):
    texts = statements(name, hostile(name, 4000, **options))
    assert least < len(texts) <= most
    answers = parsed(go_program(name), texts)
    firsts = {tuple(one.split()[0] for one in answer["formatted"]) for answer in answers}
    assert firsts == {FIRST_WORDS[name]}


@pytest.mark.parametrize("name", WRONG)
def test_the_parser_refuses_what_is_wrong(name):
    assert {answer["count"] for answer in parsed(go_program(name), WRONG[name])} == {-1}


def test_a_second_statement_is_counted():
    two = "ALTER DATABASE app CONFIGURE ZONE USING num_replicas = 3; DROP DATABASE app"
    (answer,) = parsed(go_program("cockroachdb"), [two])
    assert answer["count"] == 2
    assert "DROP" in answer["formatted"][1]


def test_tables_of_cockroachdb():
    system = load_system("cockroachdb")
    deployment = Deployment.of("plan", PLAIN)
    texts = [
        written(system, deployment, localities(system), "app", table=table)
        for table in ("users", "public.users", "a'b", 'a"b', "select", "x;y")
    ]
    assert {answer["count"] for answer in parsed(go_program("cockroachdb"), texts)} == {2}
