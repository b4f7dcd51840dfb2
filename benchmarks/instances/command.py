"""``python -m benchmarks library``: check the answers of the instance library, or improve them."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness.study import BAD, FOUND, WORSE
from benchmarks.instances.catalogue import catalogue
from benchmarks.instances.library import LIBRARY, Entry, answer, better, check, read, write
from benchmarks.instances.question import digest
from placement.errors import InputError, PlacementError

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--check",
        action="store_true",
        help="evaluate every plan again, and prove again what took at most --prove seconds",
    )
    what.add_argument(
        "--solve",
        metavar="NAME",
        nargs="+",
        help="answer the questions of these names; a better plan or bound is kept",
    )
    what.add_argument("--all", action="store_true", help="answer every question that is open")
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="only questions whose name contains TEXT"
    )
    parser.add_argument(
        "--prove",
        type=float,
        default=1.0,
        metavar="S",
        help="--check: prove again what took at most S seconds of CPU (default 1)",
    )
    parser.add_argument(
        "--time-limit",
        type=float,
        default=10.0,
        metavar="S",
        help="--solve, --all: seconds for each question (default 10)",
    )
    parser.add_argument(
        "--method", default="exact", metavar="NAME", help="--solve, --all: method (default exact)"
    )
    parser.add_argument(
        "--library", type=Path, default=LIBRARY, metavar="FILE", help="another library"
    )


def run(asked: argparse.Namespace) -> int:
    """Run the verb and return the exit code."""
    if asked.all or asked.solve:
        return _solve(asked)
    entries = [entry for entry in read(asked.library) if asked.only in entry.question.name]
    if asked.check:
        return _check(entries, asked.prove)
    _list(entries)
    return FOUND


def _list(entries: Sequence[Entry]) -> None:
    """Print a line for each question, and how many are proven."""
    for entry in entries:
        known = entry.answer
        state = "no answer" if known is None else f"{known.status:10s} gap {100 * known.gap:.2g} %"
        print(f"{entry.question.name:32s} {entry.question.size:5d} sites  {state}")
    found = Counter("none" if e.answer is None else e.answer.status for e in entries)
    print(", ".join(f"{count} {status}" for status, count in sorted(found.items())))


def _check(entries: Sequence[Entry], prove_below: float) -> int:
    """Check entries; exit code 2 when one does not hold."""
    wrong = 0
    for entry in entries:
        try:
            flaws = check(entry, prove_below)
        except PlacementError as error:
            flaws = [str(error)]
        wrong += bool(flaws)
        for flaw in flaws:
            print(f"{entry.question.name}: {flaw}")
    print(f"{len(entries) - wrong} of {len(entries)} entries hold")
    return WORSE if wrong else FOUND


def _solve(asked: argparse.Namespace) -> int:
    """Answer questions one after another; the library is written after each."""
    path: Path = asked.library
    known = {entry.question.name: entry for entry in read(path)} if path.exists() else {}
    questions = {question.name: question for question in catalogue()}
    questions |= {name: entry.question for name, entry in known.items()}
    unknown = [name for name in asked.solve or () if name not in questions]
    if unknown:
        raise InputError("no such question", field="--solve", value=unknown[0])
    for name in asked.solve or [name for name in questions if asked.only in name]:
        question, entry = questions[name], known.get(name)
        old = None if entry is None else entry.answer
        if old is not None and not asked.solve:
            done = old.status in ("optimal", "infeasible")
            if done or (old.limit >= asked.time_limit and asked.method in old.method):
                continue
        problem = question.problem()
        try:
            new = answer(question, problem, asked.method, asked.time_limit)
        except PlacementError as error:
            print(f"{name}: {error}", file=sys.stderr)
            if asked.solve:
                return BAD
            continue
        best = better(old, new)
        if entry is None:
            entry = Entry(question, digest(problem))
        known[name] = dataclasses.replace(entry, answer=best)
        order = [one for one in questions if one in known]
        write((known[one] for one in order), path)
        print(
            f"{name}: {new.status}, gap {100 * best.gap:.2g} %, {new.seconds:g} s",
            file=sys.stderr,
            flush=True,
        )
    return FOUND
