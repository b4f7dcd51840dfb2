"""How many lines there are: limits for each package and each room, which may only be lowered.

Lines of ``*.py``, ``*.c``, ``*.h``, ``*.js``, ``*.css`` and ``*.pyi`` under version control, as
``wc -l`` counts them. A package keeps its limit. A room (a folder of a package) may pass its own by
a twentieth, so that code can move from room to room. Who cuts lowers both in the same commit:
``python -m tests.test_size`` prints what could be lowered.
"""

import subprocess
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SUFFIXES = (".py", ".c", ".h", ".js", ".css", ".pyi")

PACKAGES = {
    "placement": 86000,
    "formulations": 38686,
    "heuristics": 6724,
    "benchmarks": 17954,
    "tests": 57783,
}

ROOMS = {
    "benchmarks/contingency": 894,
    "benchmarks/exact": 1648,
    "benchmarks/explore": 318,
    "benchmarks/fleet": 117,
    "benchmarks/foundation": 306,
    "benchmarks/harness": 3189,
    "benchmarks/instances": 783,
    "benchmarks/live": 2762,
    "benchmarks/local_search": 289,
    "benchmarks/milp": 241,
    "benchmarks/online": 3051,
    "benchmarks/overtime": 1718,
    "benchmarks/paper_tier3": 667,
    "benchmarks/peers": 399,
    "benchmarks/quorumstore": 294,
    "benchmarks/rtt_model": 146,
    "benchmarks/tail": 576,
    "benchmarks/tuning": 284,
    "formulations/contingency": 2886,
    "formulations/cpsat": 1169,
    "formulations/enumeration": 786,
    "formulations/exact": 17540,
    "formulations/fleet": 1718,
    "formulations/milp": 2793,
    "formulations/online": 2018,
    "formulations/overtime": 560,
    "formulations/quorumstore": 4285,
    "formulations/solvers": 1243,
    "formulations/tail": 1278,
    "formulations/waits": 1221,
    "heuristics/contingency": 113,
    "heuristics/local_search": 1587,
    "heuristics/online": 2349,
    "heuristics/quorumstore": 349,
    "heuristics/tail": 417,
    "placement/analysis": 2511,
    "placement/cli": 6559,
    "placement/contingency": 1120,
    "placement/databases": 7440,
    "placement/datasets": 1276,
    "placement/evaluation": 5239,
    "placement/explore": 2937,
    "placement/feasibility": 683,
    "placement/fleet": 1271,
    "placement/io": 10340,
    "placement/measures": 2466,
    "placement/methods": 667,
    "placement/model": 4593,
    "placement/online": 7263,
    "placement/overtime": 8205,
    "placement/proof": 6605,
    "placement/quorumstore": 2202,
    "placement/report": 4414,
    "placement/support": 823,
    "placement/tail": 2340,
    "placement/testing": 1111,
    "placement/text": 843,
    "placement/workloads": 1739,
    "tests/analysis": 1798,
    "tests/benchmarks": 2017,
    "tests/cli": 1699,
    "tests/contingency": 1505,
    "tests/databases": 3640,
    "tests/datasets": 1047,
    "tests/evaluation": 1052,
    "tests/exact": 2900,
    "tests/fleet": 1473,
    "tests/heuristics": 1713,
    "tests/io": 2833,
    "tests/milp": 1724,
    "tests/money": 1666,
    "tests/online": 4577,
    "tests/overtime": 4767,
    "tests/proof": 3039,
    "tests/protocols": 2724,
    "tests/quorumstore": 2773,
    "tests/report": 1034,
    "tests/tail": 2420,
    "tests/workloads": 1139,
}


@cache
def lines() -> Counter[str]:
    """Return the lines of each package and of each room."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("not under version control")
    found: Counter[str] = Counter()
    for name in listed.stdout.decode().split("\0"):
        parts = name.split("/")
        if parts[0] in PACKAGES and name.endswith(SUFFIXES) and (ROOT / name).is_file():
            count = (ROOT / name).read_bytes().count(b"\n")
            found[parts[0]] += count
            if len(parts) > 2:
                found["/".join(parts[:2])] += count
    return found


def test_no_package_grows():
    too_long = {name: lines()[name] - most for name, most in PACKAGES.items()}
    assert not {name: f"{over} lines too many" for name, over in too_long.items() if over > 0}


def test_no_room_grows():
    """A new room has no limit of its own, nor have small rooms of tests; their package has."""
    too_long = {name: lines()[name] - most for name, most in ROOMS.items()}
    assert not {
        name: f"{over} lines above {ROOMS[name]}"
        for name, over in too_long.items()
        if over > ROOMS[name] // 20
    }


if __name__ == "__main__":
    for each, most in (PACKAGES | ROOMS).items():
        if lines()[each] < most:
            print(f'    "{each}": {lines()[each]},')
