"""TiDB's own parser."""

import pytest

from tests.databases.real.texts import hostile, plans
from tests.databases.real.tools import go_program, parsed

pytestmark = pytest.mark.databases


def test_every_plan_is_two_statements_that_format_back_to_themselves():
    texts = plans("tidb", 2000)
    assert len(texts) > 200
    program = go_program("tidb")
    answers = parsed(program, texts)
    assert {answer["count"] for answer in answers} == {2}
    again = parsed(program, [";\n".join(answer["formatted"]) for answer in answers])
    assert [answer["formatted"] for answer in again] == [one["formatted"] for one in answers]


def test_hostile_names_never_become_another_statement():
    texts = hostile("tidb", 4000)
    assert len(texts) > 3500
    answers = parsed(go_program("tidb"), texts)
    assert {answer["count"] for answer in answers} == {2}
    firsts = {tuple(one.split()[0] for one in answer["formatted"]) for answer in answers}
    assert firsts == {("CREATE", "SHOW")}


def test_the_parser_refuses_what_is_wrong():
    bad = [
        "CREATE PLACEMENT POLICY p SURVIVAL_PREFERENCE='[region]'",
        "CREATE PLACEMENT POLICY p FOLLOWERS=0",
        "CREATE PLACEMENT POLICY us-east FOLLOWERS=2",
    ]
    assert {answer["count"] for answer in parsed(go_program("tidb"), bad)} == {-1}
