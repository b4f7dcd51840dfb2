"""CockroachDB's own parser, v25.2."""

import pytest

from placement.databases import Deployment, load_system
from tests.databases.real.texts import PLAIN, hostile, plans, written
from tests.databases.real.tools import go_program, parsed
from tests.databases.worlds import localities

pytestmark = pytest.mark.databases


def test_every_plan_is_two_statements_that_format_back_to_themselves():
    texts = plans("cockroachdb", 2000)
    assert len(texts) > 500
    program = go_program("cockroachdb")
    answers = parsed(program, texts)
    assert {answer["count"] for answer in answers} == {2}
    again = parsed(program, [";\n".join(answer["formatted"]) for answer in answers])
    assert [answer["formatted"] for answer in again] == [one["formatted"] for one in answers]


def test_hostile_names_never_become_another_statement():
    texts = hostile("cockroachdb", 4000)
    assert len(texts) > 3500
    answers = parsed(go_program("cockroachdb"), texts)
    assert {answer["count"] for answer in answers} == {2}
    firsts = {tuple(one.split()[0] for one in answer["formatted"]) for answer in answers}
    assert firsts == {("ALTER", "SHOW")}


def test_tables():
    system = load_system("cockroachdb")
    deployment = Deployment.of("plan", PLAIN)
    texts = [
        written(system, deployment, localities(system), "app", table=table)
        for table in ("users", "public.users", "a'b", 'a"b', "select", "x;y")
    ]
    assert {answer["count"] for answer in parsed(go_program("cockroachdb"), texts)} == {2}


def test_the_parser_refuses_what_is_wrong():
    """The checks above can fail."""
    bad = ["ALTER DATABASE us-east CONFIGURE ZONE USING num_replicas = 3", "ALTER DATABASE 'x"]
    assert {a["count"] for a in parsed(go_program("cockroachdb"), bad)} == {-1}
    two = "ALTER DATABASE app CONFIGURE ZONE USING num_replicas = 3; DROP DATABASE app"
    assert parsed(go_program("cockroachdb"), [two])[0]["count"] == 2
    assert "DROP" in parsed(go_program("cockroachdb"), [two])[0]["formatted"][1]
