"""Rules of thumb about writes ask what an operation is, and not what it waits for."""

import json

import pandas as pd
import pytest

import placement
from heuristics.baselines import greatest_writer
from placement.errors import InputError
from placement.evaluation.rules_of_thumb import rules_of_thumb
from placement.io.instance_folder import (
    instance_document,
    instance_from_document,
    load_instance,
    save_instance,
)
from placement.model.operations import STANDARD_OPERATIONS, Operation

ETCD = (Operation("linearizable_read", direct=1, quorum=1), Operation("put", direct=1, quorum=1))


def world(operations=ETCD, writes=1.0):
    """Client a reads a lot (with votes), client b writes a little."""
    return placement.Instance(
        sites=("a", "b", "c"),
        clients=("a", "b"),
        client_rtt=[[1, 50, 60], [50, 1, 40]],
        site_rtt=[[0, 50, 60], [50, 0, 40], [60, 40, 0]],
        counts=[[1000, 0], [0, writes]],
        operations=operations,
    )


def test_kinds():
    assert [o.kind for o in STANDARD_OPERATIONS] == ["read", "read", "read", "write", "write"]
    assert [o.kind for o in ETCD] == ["read", "write"]
    assert Operation("lease", direct=1, kind="write").is_transaction
    assert Operation("scan", quorum=1, kind="read").kind == "read"
    with pytest.raises(InputError, match="unknown kind of operation 'scan'"):
        Operation("scan", kind="readonly")


def test_a_linearizable_read_is_no_write():
    problem = placement.Problem(world(), replicas=3, voters=3)
    assert greatest_writer(problem) == 1
    for method in ("most-writes", "closest-to-writes"):
        assert placement.solve(problem, method).leader == "b"
    plan = placement.solve(problem, "exhaustive")
    (rule,) = [c for c in rules_of_thumb(problem, plan.configuration)
               if c.strategy == "closest-to-writes"]  # fmt: skip
    assert rule.leader == "b"
    # said to be a write, it decides
    said = (Operation("linearizable_read", direct=1, quorum=1, kind="write"), ETCD[1])
    problem = placement.Problem(world(said), replicas=3, voters=3)
    assert placement.solve(problem, "most-writes").leader == "a"


def test_nobody_writes_where_all_that_waits_for_votes_is_a_read():
    problem = placement.Problem(world(writes=0), replicas=3, voters=3)
    with pytest.raises(placement.UnsupportedError, match="no client issues any"):
        placement.solve(problem, "most-writes")


def test_kinds_survive_files(tmp_path):
    own = (Operation("scan", quorum=1, kind="read"), Operation("put", quorum=1))
    instance = world(own)
    save_instance(instance, tmp_path / "w")
    manifest = json.loads((tmp_path / "w" / "instance.json").read_text())
    assert [row.get("kind") for row in manifest["operations"]] == ["read", None]
    assert load_instance(tmp_path / "w").operations == own
    embedded = json.loads(json.dumps(instance_document(instance)))
    path = tmp_path / "e.json"
    path.write_text(json.dumps(embedded))
    from placement.io.formats.document import read_document

    assert instance_from_document(read_document(path)).operations == own


def test_kinds_in_a_frame():
    frame = pd.DataFrame(
        {"near": [0, 0], "relay": [0, 0], "direct": [1, 1], "quorum": [1, 1],
         "kind": ["read", "write"]},
        index=["scan", "put"],
    )  # fmt: skip
    counts = pd.DataFrame([[3, 4]], index=["c"], columns=["scan", "put"])
    instance = placement.Instance.from_frames(
        client_rtt=pd.DataFrame([[1.0]], index=["c"], columns=["s"]),
        site_rtt=pd.DataFrame([[0.0]], index=["s"], columns=["s"]),
        counts=counts,
        operations=frame,
    )
    assert [o.kind for o in instance.operations] == ["read", "write"]
    assert placement.Instance.from_frames(**instance.to_frames()).operations == instance.operations
