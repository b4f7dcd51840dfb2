"""PostgreSQL's parser (pglast) on statements for PostgreSQL and YugabyteDB."""

import json
import subprocess

import pytest

from placement.databases import Deployment, load_system
from placement.databases.system import read_deployment, write_deployment
from placement.errors import InputError, UnsupportedError
from placement.testing.databases import deployment_worlds, hostile_names
from tests.databases.real.texts import PLAIN, plans
from tests.databases.real.tools import python_with

pytestmark = pytest.mark.databases

PROGRAM = """
import json, sys, pglast
for line in sys.stdin:
    try:
        print(json.dumps([type(one.stmt).__name__ for one in pglast.parse_sql(json.loads(line))]))
    except pglast.parser.ParseError as error:
        print(json.dumps(["error", str(error)]))
"""


@pytest.fixture(scope="module")
def kinds():
    """Return the function from texts to the kinds of their statements."""
    python = python_with("pglast", "pglast==8.7")

    def ask(texts):
        lines = "".join(json.dumps(text) + "\n" for text in texts)
        done = subprocess.run(
            [python, "-c", PROGRAM], input=lines, capture_output=True, text=True, check=True
        )
        found = [tuple(json.loads(line)) for line in done.stdout.splitlines()]
        assert len(found) == len(texts)
        return set(found)

    return ask


def test_statements_of_postgresql(kinds):
    texts = plans("postgresql", 1000)
    assert len(texts) > 200
    assert kinds(texts) == {("AlterSystemStmt", "SelectStmt", "SelectStmt")}


def test_statements_of_yugabytedb_in_the_form_that_postgresql_knows(kinds):
    """The parser needs a LOCATION to create a tablespace, so the ALTER form is tried."""
    system = load_system("yugabytedb")
    names = next(iter(deployment_worlds(system))).localities
    deployment = Deployment.of("plan", PLAIN, leaders=("us-east-1",))
    texts = []
    for name in hostile_names(3, 2000):
        request = system.request(names, name)
        try:
            first = write_deployment(system, deployment, request)
            now = read_deployment(system, (("f", first.text),), request).deployment
            texts.append(write_deployment(system, deployment, request, now).text)
        except (InputError, UnsupportedError):
            continue
    assert len(texts) > 1500
    assert kinds(texts) == {("AlterTableSpaceOptionsStmt",)}
