"""A method of another distribution is installed beside ours and called the same way."""

import json
import subprocess
import sys
import zipfile

METHOD = '''
"""A toy method of a third party: the first feasible configuration."""

from placement.feasibility.feasible_plans import find_feasible
from placement.methods.options import Setting
from placement.methods.registry import Method
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

NAME, VERSION = "toy_placement_method", "0.1"


def wheel(folder):
    """Write the distribution as a wheel: what a build backend would make of its sources."""
    info = f"{NAME}-{VERSION}.dist-info"
    files = {
        f"{NAME}.py": METHOD,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {VERSION}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[placement.methods]\ntoy = {NAME}:METHOD\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    path = folder / f"{NAME}-{VERSION}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


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
    target = tmp_path / "site"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index",
         "--disable-pip-version-check", "--target", str(target), str(wheel(tmp_path))],
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
