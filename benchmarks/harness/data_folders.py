"""Options for folders: ``--results``, and ``--latency``, ``--pmed`` and others for data.

Measured latencies and the p-median files of the OR-Library and of TSPLIB are no part of the
project; they stay where the user has them. A program adds the option of each folder that it reads
and hands the folder on as an argument. Without the option the argument is None, and the parts that
need the folder are left out.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from placement.errors import InputError

_HELP = {
    "baseline": "checkout of an older build, kernels in place",
    "latency": "folder of measured latencies (CSV); without it the measured networks are left out",
    "results": "folder for the files of results (default: benchmarks/results)",
    "pmed": "folder of pmed1.txt to pmed40.txt and optima.txt; without it they are left out",
    "tsplib": "folder of points of TSPLIB (rl1304.tsp, …); without it they are left out",
}


def add_folder(parser: argparse.ArgumentParser, name: str, default: Path | None = None) -> None:
    """Add the option ``--NAME DIR``; its value is a ``Path``, or the default.

    It is checked before the program begins: a wrong folder costs no measurement. Where there is a
    default, the folder is made when the first file is written.

    Parameters
    ----------
    parser
        Of the program.
    name
        "results", "latency", "baseline", "pmed" or "tsplib".
    default
        Value without the option.
    """

    def named(text: str) -> Path:
        path = Path(text)
        if path.exists() and not path.is_dir():
            raise argparse.ArgumentTypeError(f"{text} is a file: expected a folder")
        if default is None and not path.exists():
            raise argparse.ArgumentTypeError(f"no such folder: {text}")
        return path

    parser.add_argument(f"--{name}", type=named, default=default, metavar="DIR", help=_HELP[name])


def measured_file(here: Path | None, name: str) -> Path:
    """Return a file of the folder of measured latencies.

    Raises
    ------
    InputError
        When there is no folder, or no such file in it.
    """
    if here is None or not (here / name).is_file():
        raise InputError(
            "no such file among the measured latencies",
            source=str(here / name) if here else name,
            expected="--latency DIR, a folder that has it",
        )
    return here / name
