"""The method ``exact`` on problems: against exhaustive search, and what it hands on."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations.enumeration.exhaustive import METHOD as EXHAUSTIVE
from formulations.exact.method import METHOD, solve
from placement import Diversity, Problem
from placement.methods.options import Options, Progress
from placement.methods.registry import available, run
from placement.support.status import Status, Termination
from placement.testing import random_instance
from tests.effort import examples

needs_milp = pytest.mark.skipif("milp" not in available(), reason="milp is not registered")


@settings(max_examples=examples(20))
@given(st.integers(0, 10**6))
def test_certificate_is_json(seed):
    problem = Problem(random_instance(seed), replicas=3, voters=2)
    plan = run(METHOD, problem, Options())
    text = json.dumps(plan.certificate)
    assert json.loads(text) == plan.certificate
    assert plan.certificate["bound"] == pytest.approx(plan.bound, rel=1e-12)


def test_certificate_can_be_left_out():
    problem = Problem(random_instance(1), replicas=3, voters=2)
    plan = run(METHOD, problem, Options(settings={"certificate": False}))
    assert plan.status is Status.OPTIMAL
    assert plan.certificate is None


@needs_milp
@pytest.mark.parametrize(
    ("instance", "question", "word"),
    [
        (
            random_instance(3, prices=True),
            {
                "replicas": 3,
                "voters": 2,
                "budget": 1e9,
                "diversity": [Diversity("region", "replicas", min_domains=2)],
            },
            "budget",
        ),
        (
            random_instance(3, prices=True, intervals=2, varying=True),
            {"replicas": 3, "voters": 2, "budget": 1e9},
            "budget",
        ),
        (
            random_instance(3, sites=20, clients=2, intervals=2, varying=True),
            {"replicas": 20, "voters": 9},
            "vary by interval",
        ),
    ],
)
def test_hands_on_what_the_engine_cannot_take_and_says_so(instance, question, word):
    problem = Problem(instance, **question)
    plan = run(METHOD, problem, Options())
    truth = run(EXHAUSTIVE, problem, Options())
    assert plan.status is truth.status
    assert plan.method == "exact"
    assert any("milp" in note and word in note for note in plan.notes)
    if truth.found:
        assert plan.objective == pytest.approx(truth.objective, rel=1e-9)


def test_reports_are_honest():
    reports: list[Progress] = []
    problem = Problem(random_instance(4), replicas=3, voters=2)
    plan = run(METHOD, problem, Options(progress=reports.append))
    assert reports
    for report in reports:
        assert report.bound <= plan.objective <= report.incumbent * (1 + 1e-12)


def test_infeasible_has_a_reason():
    instance = random_instance(5)
    domains = len(set(instance.labels("region")))
    problem = Problem(
        instance,
        replicas=domains + 1,
        voters=1,
        diversity=[Diversity("region", role="replicas", cap=1)],
    )
    options = Options(settings={"certificate": True})
    plan = solve(problem, options)  # without the check that `run` makes first
    assert plan.status is Status.INFEASIBLE
    assert plan.bound == math.inf
    assert plan.reasons
    assert plan.termination is Termination.FINISHED


def test_engine_imports_nothing_heavy():
    code = (
        "import sys, formulations.exact.method\n"
        "heavy = {'pandas', 'pyomo', 'ortools', 'highspy', 'matplotlib', 'scipy', 'numba'}\n"
        "sys.exit(', '.join(heavy & set(sys.modules)) or None)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_works_without_the_compiled_kernel():
    """As on a machine where it could not be built: `milp` answers, and the plan says so."""
    code = (
        "import sys\n"
        "sys.modules['formulations.exact._kernel'] = None\n"
        "from formulations.exact.kernel import compiled_available\n"
        "from formulations.exact.method import METHOD\n"
        "from placement import Problem\n"
        "from placement.methods import Options, run\n"
        "from placement.testing import random_instance\n"
        "assert not compiled_available()\n"
        "plan = run(METHOD, Problem(random_instance(0), replicas=3, voters=2), Options())\n"
        "assert plan.status == 'optimal', plan\n"
        "assert plan.notes[0].startswith(\"solved by 'milp': the compiled kernels\"), plan.notes\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
