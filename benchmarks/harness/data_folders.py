"""Folders of data that are no part of the project: ``--latency``, ``--pmed`` and ``--tsplib DIR``.

Measured latencies and the p-median files of the OR-Library and of TSPLIB stay where the user has
them. A program
adds the option of each folder that it reads; without it, the parts that need the folder are left
out.
"""

from __future__ import annotations

import argparse
from pathlib import Path

__all__ = ["add_folder", "folder"]

_HELP = {
    "latency": "folder of measured latencies (CSV); without it the measured networks are left out",
    "pmed": "folder of pmed1.txt to pmed40.txt and optima.txt; without it they are left out",
    "tsplib": "folder of points of TSPLIB (rl1304.tsp, …); without it they are left out",
}
_named: dict[str, Path] = {}


def add_folder(parser: argparse.ArgumentParser, name: str) -> None:
    """Add the option ``--NAME DIR``.

    Parameters
    ----------
    parser
        Of the program.
    name
        "latency", "pmed" or "tsplib".
    """

    def named(text: str) -> Path:
        path = Path(text)
        if not path.is_dir():
            raise argparse.ArgumentTypeError(f"no such folder: {text}")
        return _named.setdefault(name, path)

    parser.add_argument(f"--{name}", type=named, metavar="DIR", help=_HELP[name])


def folder(name: str) -> Path | None:
    """Return the folder that the user named; None when there is none.

    Parameters
    ----------
    name
        As :func:`add_folder` takes it.
    """
    return _named.get(name)
