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
    "placement": 69052,
    "formulations": 31776,
    "heuristics": 5472,
    "benchmarks": 11683,
    "tests": 47986,
}

ROOMS = {
    "benchmarks/commit_paths": 995,
    "benchmarks/exact": 1621,
    "benchmarks/explore": 195,
    "benchmarks/harness": 2486,
    "benchmarks/instances": 509,
    "benchmarks/live": 934,
    "benchmarks/online": 1742,
    "benchmarks/overtime": 1042,
    "formulations/cpsat": 0,
    "formulations/enumeration": 689,
    "formulations/exact": 18415,
    "formulations/fleet": 1657,
    "formulations/milp": 1697,
    "formulations/online": 1564,
    "formulations/overtime": 227,
    "formulations/quorumstore": 3296,
    "formulations/solvers": 1055,
    "formulations/waits": 1139,
    "heuristics/local_search": 1079,
    "heuristics/online": 2220,
    "heuristics/quorumstore": 328,
    "placement/analysis": 1889,
    "placement/cli": 4940,
    "placement/contingency": 238,
    "placement/databases": 6695,
    "placement/datasets": 830,
    "placement/evaluation": 3816,
    "placement/explore": 2517,
    "placement/feasibility": 568,
    "placement/fleet": 1143,
    "placement/io": 8633,
    "placement/measures": 2401,
    "placement/methods": 627,
    "placement/model": 4078,
    "placement/online": 6018,
    "placement/overtime": 5592,
    "placement/proof": 5636,
    "placement/quorumstore": 2056,
    "placement/report": 2794,
    "placement/support": 804,
    "placement/tail": 1720,
    "placement/testing": 976,
    "placement/text": 728,
    "placement/workloads": 1432,
    "tests/analysis": 1462,
    "tests/benchmarks": 1735,
    "tests/cli": 2068,
    "tests/contingency": 758,
    "tests/databases": 3640,
    "tests/datasets": 826,
    "tests/evaluation": 732,
    "tests/exact": 2459,
    "tests/fleet": 1342,
    "tests/heuristics": 1426,
    "tests/io": 2620,
    "tests/milp": 1347,
    "tests/money": 1563,
    "tests/online": 3598,
    "tests/overtime": 3663,
    "tests/proof": 2467,
    "tests/protocols": 2098,
    "tests/quorumstore": 2189,
    "tests/report": 846,
    "tests/tail": 1011,
    "tests/workloads": 949,
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
