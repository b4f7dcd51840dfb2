"""Patroni's own check of its configuration, and PyYAML on the exported text."""

import json
import subprocess

import pytest

from placement.languages import yaml_documents
from tests.databases.real.texts import plans
from tests.databases.real.tools import python_with

pytestmark = pytest.mark.databases

SERVER = """\
scope: demo
restapi: {listen: "10.1.1.1:8008", connect_address: "10.1.1.1:8008"}
etcd3: {host: "127.0.0.1:2379"}
postgresql:
  listen: 10.1.1.1:5432
  connect_address: 10.1.1.1:5432
  data_dir: data
  authentication:
    replication: {username: r, password: r}
    superuser: {username: s, password: s}
"""
AROUND = ("restapi.", "etcd3.", "postgresql.")
"""Fields of the test's own part, which need a machine of their own."""


@pytest.fixture(scope="module")
def python():
    return python_with("patroni", "patroni==4.1.5", "psycopg[binary]==3.2.3", "PyYAML==6.0.3")


def complaints(python, folder, dynamic, server):
    """Return what Patroni says against the exported parts of a configuration."""
    inner = "".join(f"    {line}\n" for line in dynamic.splitlines() if not line.startswith("#"))
    (folder / "patroni.yml").write_text(f"{SERVER}bootstrap:\n  dcs:\n{inner}{server}")
    done = subprocess.run(
        [python, "-m", "patroni", "--validate-config", "patroni.yml"], cwd=folder,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    said = (done.stdout + done.stderr).splitlines()
    assert not any("Traceback" in line or "FATAL" in line for line in said), said
    return [line for line in said if line.strip() and not line.startswith(AROUND)]


def test_patroni_accepts_the_exported_parts(python, tmp_path):
    tried = set()
    for text in plans("patroni", 60):
        dynamic, *servers = text.split("---\n")
        for server in servers:
            kind = (dynamic, server.partition("tags:")[2])
            if kind in tried or len(tried) == 12:
                continue
            tried.add(kind)
            assert complaints(python, tmp_path, dynamic, server) == [], server
    assert len(tried) == 12


def test_patroni_refuses_what_is_wrong(python, tmp_path):
    both = "name: p\ntags: {failover_priority: 2, nofailover: true}\n"
    assert complaints(python, tmp_path, "synchronous_mode: quorum", both)
    none = "synchronous_mode: quorum\nsynchronous_node_count: 0"
    assert complaints(python, tmp_path, none, "name: p\n")


def test_yaml_says_the_same(python):
    texts = plans("patroni", 400)
    program = (
        "import json, sys, yaml\n"
        "for line in sys.stdin:\n"
        "    print(json.dumps(list(yaml.safe_load_all(json.loads(line)))))\n"
    )
    lines = "".join(json.dumps(text) + "\n" for text in texts)
    done = subprocess.run(
        [python, "-c", program], input=lines, capture_output=True, text=True, check=True
    )
    for text, answer in zip(texts, done.stdout.splitlines(), strict=True):
        assert [plain(table) for table in json.loads(answer)] == yaml_documents(text, "f")


def plain(value):
    """Return values as our reader has them: text, with truth values in small letters."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return str(value).lower() if isinstance(value, bool) else str(value)
