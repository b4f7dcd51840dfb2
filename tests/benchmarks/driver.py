"""The command line of the harness with a suite of marks: ``driver FILE MARKS CELLS JOBS``."""

import sys
from types import MappingProxyType

from benchmarks import __main__ as harness
from benchmarks.harness.cells import CellLimits, ScriptCell
from benchmarks.harness.suites import Suite


def main() -> int:
    output, marks, count, jobs = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
    suite = Suite(
        "marks",
        "for tests",
        "",
        scripts=tuple(
            ScriptCell("tests.benchmarks.marker", (marks, f"{i}", "0.01"), CellLimits(wall=30.0))
            for i in range(count)
        ),
    )
    harness.SUITES = MappingProxyType({"marks": suite})
    return harness.main(["run", "marks", "-o", output, "--resume", "--jobs", jobs])


if __name__ == "__main__":
    sys.exit(main())
