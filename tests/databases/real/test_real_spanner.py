"""The statement of Spanner, by the parser memefish."""

import json

import pytest

from tests.databases.real.texts import hostile, plans
from tests.databases.real.tools import go_program, parsed

pytestmark = pytest.mark.databases


def statements(texts):
    return [";\n".join(json.loads(text)["statements"]) for text in texts]


def test_every_plan_has_one_statement_that_formats_back_to_itself():
    texts = statements(plans("spanner", 2000))
    assert len(texts) > 40
    program = go_program("spanner")
    answers = parsed(program, texts)
    assert {answer["count"] for answer in answers} == {1}
    again = parsed(program, [answer["formatted"][0] for answer in answers])
    assert [answer["formatted"] for answer in again] == [one["formatted"] for one in answers]


def test_names_of_databases_never_become_another_statement():
    # Spanner's own rule for names leaves few of the hostile ones
    taken = statements(hostile("spanner", 4000, voters={"us-east-1": 3}))
    assert 0 < len(taken) < 400
    assert {answer["count"] for answer in parsed(go_program("spanner"), taken)} == {1}


def test_the_parser_refuses_what_is_wrong():
    bad = ["ALTER DATABASE us-east SET OPTIONS (default_leader = 'x')", "ALTER DATABASE `a` SET x"]
    assert {answer["count"] for answer in parsed(go_program("spanner"), bad)} == {-1}
