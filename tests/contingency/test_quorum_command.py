"""``placement lab quorum`` from the outside."""

import csv
import json

import pytest

from placement.cli.dispatch import main


@pytest.fixture
def rtts(tmp_path):
    path = tmp_path / "rtt.csv"
    path.write_text("site,a,b,c,d\na,1,20,90,60\nb,20,1,80,50\nc,90,80,1,40\nd,60,50,40,1\n")
    return str(path)


def run_json(capsys, *arguments, code=0):
    assert main([*arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


KEY = ["--reads", "a=5", "--reads", "b=3", "--reads", "c=1", "--writes", "a=1"]


def test_one_key(capsys, rtts):
    from formulations.quorumstore import place
    from placement.quorumstore import QuorumProblem, StoreRules

    rtt = [[1, 20, 90, 60], [20, 1, 80, 50], [90, 80, 1, 40], [60, 50, 40, 1]]
    for model, contingency in (("--normal", False), ("--worst", True)):
        found = run_json(capsys, "lab", "quorum", rtts, *KEY, model)
        rules = StoreRules(contingency)
        truth = place(
            QuorumProblem(rtt, [5, 3, 1, 0], [1, 0, 0, 0], sites=tuple("abcd"), rules=rules)
        )
        assert (found["value_ms"], found["replicas"]) == (truth.value, list(truth.replicas))
        assert (found["n"], found["r"], found["w"]) == (
            len(truth.replicas),
            truth.read_quorum,
            truth.write_quorum,
        )
    solved = run_json(capsys, "lab", "quorum", rtts, *KEY, "--method", "cp-sat")
    assert solved["value_ms"] == truth.value


def test_envelope(capsys, rtts):
    envelope = run_json(capsys, "lab", "quorum", rtts, *KEY, "--envelope", "--normal")
    assert envelope["optima"] >= 1
    assert envelope["failure"]["best"] <= envelope["failure"]["worst"]


RTT = [[1, 20, 90, 60], [20, 1, 80, 50], [90, 80, 1, 40], [60, 50, 40, 1]]


@pytest.mark.parametrize(
    ("options", "goal"),
    [
        (["--target", "reads"], {"target": "reads"}),
        (["--target", "writes"], {"target": "writes"}),
        (["--target", "reads", "--write-limit", "80"], {"target": "reads", "write_bound": 80}),
        (["--weighted", "3,0.5"], {"target": "weighted", "read_weight": 3, "write_weight": 0.5}),
        (["--mix", "1,0.25"], {"normal_weight": 1, "worst_weight": 0.25}),
        (
            ["--mix", "1,0", "--read-limit", "90", "--write-limit", "90"],
            {"normal_weight": 1, "worst_weight": 0, "read_bound": 90, "write_bound": 90},
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("model", ["--normal", "--worst"])
def test_every_goal_of_the_library(capsys, rtts, options, goal, model):
    """The command line asks the same question as the library, and gives its answer."""
    from formulations.quorumstore import place
    from placement.quorumstore import Goal, QuorumProblem, StoreRules, Target

    if model == "--normal" and "--mix" in options:
        assert main(["lab", "quorum", rtts, *KEY, model, *options]) == 1
        assert "--mix" in capsys.readouterr().err
        return
    goal = dict(goal)
    target = Target(goal.pop("target", "threshold"))
    problem = QuorumProblem(
        RTT, [5, 3, 1, 0], [1, 0, 0, 0], sites=tuple("abcd"),
        rules=StoreRules(model == "--worst"), goal=Goal(target, **goal),
    )  # fmt: skip
    truth = place(problem)
    found = run_json(capsys, "lab", "quorum", rtts, *KEY, model, *options)
    assert found["goal"] == target.value
    assert found["value_ms"] == truth.value
    assert (found["replicas"], found["r"]) == (list(truth.replicas), truth.read_quorum)


def test_rules_that_cannot_hold_are_explained(capsys, rtts):
    found = run_json(capsys, "lab", "quorum", rtts, *KEY, "--n-max", "2", code=2)
    assert "N >= 3" in " ".join(found["reasons"])
    assert main(["lab", "quorum", rtts, *KEY, "--read-limit", "0"]) == 2
    assert "infeasible" in capsys.readouterr().out


def test_a_table_of_keys(capsys, rtts, tmp_path):
    keys, target = tmp_path / "keys.csv", tmp_path / "out.csv"
    keys.write_text("key,reads:a,reads:b,writes:a\none,5,3,1\ntwo,0,9,0\n")
    found = run_json(capsys, "lab", "quorum", rtts, "--keys", str(keys), "-o", str(target))
    assert found["keys"] == 2
    with target.open() as stream:
        table = list(csv.DictReader(stream))
    assert [row["key"] for row in table] == ["one", "two"]
    one = run_json(
        capsys, "lab", "quorum", rtts,
        "--reads", "a=5", "--reads", "b=3", "--writes", "a=1",
    )  # fmt: skip
    assert table[0]["replicas"].split(";") == one["replicas"]
    assert float(table[0]["value"]) == one["value_ms"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--reads", "x=1"], "--reads"),
        (["--reads", "a=1.5"], "--reads"),
        (["--keys", "k.csv"], "-o"),
        (["--reads", "a=1", "-o", "x.csv"], "only tables"),
        (["--reads", "a=1", "--regions", "zone"], "no levels"),
        (["--reads", "a=1", "--p", "0"], "--p"),
        (["--reads", "a=1", "--weighted", "1"], "--weighted"),
        (["--reads", "a=1", "--weighted", "0,0"], "read_weight"),
        (["--reads", "a=1", "--weighted", "1,1", "--target", "reads"], "no --target"),
        (["--reads", "a=1", "--mix", "1,x"], "--mix"),
        (["--reads", "a=1", "--target", "cost"], "--target"),
    ],
)
def test_bad_quorum_input(capsys, rtts, arguments, message):
    assert main(["lab", "quorum", rtts, *arguments]) == 1
    assert message in capsys.readouterr().err


def test_a_crooked_table_of_rtts(capsys, tmp_path):
    path = tmp_path / "rtt.csv"
    for text, message in (
        ("site,a,b\na,1,2\nc,1,2\n", "pairs have no RTT: got 'a → c"),
        ("site,a,b\na,1,x\nb,1,2\n", "row 2: b: not a number"),
        ("site,a,b\na,1\nb,1,2\n", "a row of another length"),
    ):
        path.write_text(text)
        assert main(["lab", "quorum", str(path), "--reads", "a=1"]) == 1
        assert message in capsys.readouterr().err
    assert main(["lab", "quorum", str(tmp_path / "no.csv"), "--reads", "a=1"]) == 1
    assert "no such file" in capsys.readouterr().err
