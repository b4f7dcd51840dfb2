"""The command line of the harness with a suite of marks: ``driver FOLDER MARKS CELLS JOBS``."""

import sys
from types import MappingProxyType

from benchmarks import __main__ as harness
from benchmarks.harness import run_suite as runner
from benchmarks.harness.suites import CellLimits, Grid, InstanceRecipe, Suite


def main() -> int:
    folder, marks, count, jobs = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
    grid = Grid(
        (InstanceRecipe("none"),), ("mark",), (1,), (1,), seeds=tuple(range(count)),
        limits=CellLimits(wall=30.0),
    )  # fmt: skip
    runner.COMMAND = (sys.executable, "-m", "tests.benchmarks.marker", marks)
    harness.SUITES = MappingProxyType({"marks": Suite("marks", "for tests", "", (grid,))})
    return harness.main(["run", "marks", "--results", folder, "--resume", "--jobs", jobs])


if __name__ == "__main__":
    sys.exit(main())
