"""Use an installed `placement` as a newcomer does: solve, save, check, and look for the kernels.

Run it with the interpreter of a fresh environment: `python .ci/try_install.py --kernels present`.
With `--azure` the data package must not be installed yet: the script reads the install command from
the error message of `placement solve azure`, runs it, and solves again.
"""

from __future__ import annotations

import argparse
import importlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

KERNELS = (
    "formulations.exact._kernel",
    "formulations.exact._scenarios",
    "formulations.quorumstore._kernel",
    "formulations.waits._kernel",
    "heuristics.online.selection._kernel",
    "placement.proof._pair_sums",
    "placement.tail._error_function",
)
QUESTION = ("--replicas", "5", "--voters", "3", "--survive", "country")


def placement(folder: Path, *arguments: str, fails: bool = False) -> str:
    """Return the output of the installed command `placement`; its exit code must be as expected."""
    scripts = str(Path(sys.executable).parent)
    command = shutil.which("placement", path=scripts)
    if command is None:
        sys.exit(f"no command `placement` in {scripts}")
    done = subprocess.run(
        [command, *arguments], cwd=folder, capture_output=True, text=True, encoding="utf-8",
        env={**os.environ, "PYTHONUTF8": "1"}, check=False,
    )  # fmt: skip
    if (done.returncode != 0) != fails:
        sys.exit(f"placement {' '.join(arguments)}: exit code {done.returncode}\n{done.stderr}")
    return done.stderr if fails else done.stdout


def expect(text: str, part: str) -> None:
    """Stop with a message when `part` is not in `text`."""
    if part not in text:
        sys.exit(f"expected {part!r} in:\n{text}")


def check_kernels(present: bool) -> None:
    """Stop with a message unless all kernels are there, or none."""
    for name in KERNELS:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError:
            found = False
        else:
            found = True
        if found != present:
            sys.exit(f"{name}: found: {found}, expected: {present}")


def solve_and_check(folder: Path, name: str, kernels: bool) -> None:
    """Solve one question on a data set, prove the plan file again, and write the report."""
    plan = f"{name}.json"
    answer = placement(folder, "solve", name, *QUESTION, "--output", plan)
    if kernels:
        expect(answer, "optimal, proven")
        expect(placement(folder, "check", plan), "proved")
    else:  # 'milp' answers, without a certificate
        expect(answer, "solved by 'milp'")
        expect(placement(folder, "check", plan, "--again"), "no configuration")
    placement(folder, "report", plan, "--output", f"{name}.html")


def install_as_told(folder: Path) -> None:
    """Run the install command that the error about the missing data set names."""
    message = placement(folder, "solve", "azure", *QUESTION, fails=True)
    found = re.search(r"run: (.+)", message)
    if found is None:
        sys.exit(f"expected a command after 'run: ' in:\n{message}")
    subprocess.run(found[1], shell=True, check=True, cwd=folder)


def main() -> None:
    """Run all checks; an exit code other than 0 means that one failed."""
    parser = argparse.ArgumentParser(description="use an installed placement as a newcomer does")
    parser.add_argument("--kernels", choices=("present", "absent"), required=True)
    parser.add_argument("--azure", action="store_true", help="install the data set azure too")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.chdir(folder)  # not the checkout: the installed packages are meant
        sys.path[:] = [entry for entry in sys.path if entry not in ("", str(Path(__file__).parent))]
        present = arguments.kernels == "present"
        check_kernels(present)
        expect(placement(folder, "--version"), "placement ")
        solve_and_check(folder, "world27", present)
        if arguments.azure:
            install_as_told(folder)
            solve_and_check(folder, "azure", present)
        os.chdir(Path(__file__).parent)  # Windows removes no folder that a process stands in
    print(f"placement works as installed, kernels {arguments.kernels}")


if __name__ == "__main__":
    main()
