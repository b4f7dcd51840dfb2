"""A method of another distribution is installed beside ours and called the same way."""

import json
import subprocess
import sys
import textwrap

METHOD = '''
"""A toy method of a third party: the first feasible configuration."""

from placement.feasibility import find_feasible
from placement.methods import Method, Setting
from placement.plan import Plan


def solve(problem, options):
    found = find_feasible(problem)
    if found is None:
        return Plan.infeasible(problem, method="toy", reasons=("the complete search found none",))
    return Plan.of(problem, found, method="toy", notes=(f"colour {options.settings['colour']}",))


METHOD = Method(
    name="toy",
    call=solve,
    summary="the first feasible configuration",
    exact=False,
    settings={"colour": Setting("blue", "of no consequence")},
)
'''

PYPROJECT = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "toy-placement-method"
version = "0.1"

[project.entry-points."placement.methods"]
toy = "toy_placement_method:METHOD"

[tool.setuptools]
py-modules = ["toy_placement_method"]
"""

SCRIPT = """
import json, sys
import placement
from placement.testing import check_method, random_instance

problem = placement.Problem(random_instance(1), replicas=3, voters=3)
plan = placement.solve(problem, method="toy", settings={"colour": "red"})
check_method("toy")
json.dump(
    {
        "listed": "toy" in placement.available(),
        "status": str(plan.status),
        "notes": list(plan.notes),
        "no worse": plan.score >= placement.solve(problem, method="exhaustive").score,
    },
    sys.stdout,
)
"""


def test_a_separate_distribution_registers_a_method(tmp_path):
    source, target = tmp_path / "source", tmp_path / "site"
    source.mkdir()
    (source / "pyproject.toml").write_text(textwrap.dedent(PYPROJECT))
    (source / "toy_placement_method.py").write_text(METHOD)
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation",
         "--disable-pip-version-check", "--target", str(target), str(source)],
        check=True,
        capture_output=True,
        timeout=300,
    )  # fmt: skip
    script = f"import sys; sys.path.insert(0, {str(target)!r})\n" + SCRIPT
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer == {
        "listed": True,
        "status": "feasible",
        "notes": ["colour red"],
        "no worse": True,
    }
