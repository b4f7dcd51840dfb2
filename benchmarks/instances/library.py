"""The instance library: questions with the best plan and bound known, and how both are checked.

The file has one line of JSON for each question: ``question``, the settings
(:class:`benchmarks.instances.question.LibraryQuestion`); ``data``, the digest of the instance that
follows from them; ``answer``, the best known, or null. A new question is a line with its settings
alone; ``--solve`` adds the others.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import math
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness.results import save_text
from benchmarks.harness.study import BAD, FOUND, WORSE
from benchmarks.instances.question import LibraryQuestion, digest
from placement.errors import CertificateError, InputError, LimitError, PlacementError, SolverError
from placement.feasibility.feasible_plans import violations
from placement.methods.registry import solve
from placement.model.configuration import Configuration
from placement.plan import Plan, objective_value
from placement.problem import Problem
from placement.proof.certificate_check import check_certificate
from placement.support.status import Status, status_of

LIBRARY = Path(__file__).with_name("library.jsonl")
_WORK = 10**12  # steps of a check: those that take minutes count as well

SAME = 1e-9
"""Two values are the same when they differ by at most this share: sums of doubles in another order
may differ in their last digits."""


@dataclass(frozen=True, slots=True)
class LibraryAnswer:
    """Best plan and bound of a question: sites by index, CPU seconds, time limit.

    Without a plan or a bound there is None. `certificate` is the SHA-256 of the certificate, as
    sorted JSON without spaces; another run may find another one. `checked` says whether ``placement
    check`` proved it, or without one that there is no plan.
    """

    status: str
    value: float | None
    bound: float | None
    leader: int | None
    voters: tuple[int, ...]
    replicas: tuple[int, ...]
    method: str
    seconds: float
    limit: float
    certificate: str = ""
    checked: bool = False

    @classmethod
    def of(cls, plan: Plan, seconds: float, limit: float) -> LibraryAnswer:
        """Return the answer of a plan; its certificate is checked."""
        known, checked = "", False
        if plan.certificate is not None:
            text = json.dumps(plan.certificate, sort_keys=True, separators=(",", ":"))
            known = hashlib.sha256(text.encode()).hexdigest()[:32]
        if known or plan.status is Status.INFEASIBLE:
            try:
                check_certificate(plan, work=_WORK)
                checked = True
            except LimitError:
                pass
            except CertificateError:
                if known:  # without one, only some answers "infeasible" are shown by counting
                    raise
        found = plan.configuration
        return cls(
            status=str(plan.status),
            value=None if found is None else float(plan.objective),
            bound=float(plan.bound) if math.isfinite(plan.bound) else None,
            leader=None if found is None else found.leader,
            voters=() if found is None else tuple(sorted(found.voters)),
            replicas=() if found is None else tuple(found.replicas),
            method=plan.method,
            seconds=round(seconds, 3),
            limit=limit,
            certificate=known,
            checked=checked,
        )

    @property
    def gap(self) -> float:
        """(value − bound)/value; 1 when there is no plan or no bound, 0 when that is proven."""
        if self.status == "infeasible":
            return 0.0
        if self.value is None or self.bound is None:
            return 1.0
        return max(0.0, 1 - self.bound / self.value) if self.value > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Entry:
    """A question, the digest of its data, and the best answer."""

    question: LibraryQuestion
    data: str
    answer: LibraryAnswer | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        known = None if self.answer is None else dataclasses.asdict(self.answer)
        return {"question": self.question.to_json(), "data": self.data, "answer": known}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Entry:
        """Return the entry that :meth:`to_json` wrote."""
        known = data.get("answer")
        if known is not None:
            lists = {name: tuple(known[name]) for name in ("voters", "replicas")}
            known = LibraryAnswer(**{**known, **lists})
        return cls(LibraryQuestion.from_json(data["question"]), data.get("data", ""), known)


def read(path: Path = LIBRARY) -> tuple[Entry, ...]:
    """Return the entries of a library."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return tuple(Entry.from_json(json.loads(line)) for line in lines)


def write(entries: Iterable[Entry], path: Path = LIBRARY) -> None:
    """Write a library, in place of the file that is there."""
    lines = (json.dumps(entry.to_json(), separators=(", ", ": ")) for entry in entries)
    save_text(path, "".join(f"{line}\n" for line in lines))


def answer(question: LibraryQuestion, problem: Problem, method: str, limit: float) -> LibraryAnswer:
    """Put a question to a method for at most `limit` seconds."""
    began = time.process_time()
    plan = solve(problem, method, time_limit=limit)
    return LibraryAnswer.of(plan, time.process_time() - began, limit)


def better(old: LibraryAnswer | None, new: LibraryAnswer) -> LibraryAnswer:
    """Return the best of two answers: never a worse plan or bound than before.

    SolverError when the bound of one is above the value of the other: a defect.
    """
    if old is None:
        return new
    for one, other in ((old, new), (new, old)):
        refuted = one.status == "infeasible" and other.value is not None
        if refuted or _bound(one) > _value(other) * (1 + SAME):
            raise SolverError(
                f"{one.method} says {one.status} with the bound {one.bound!r}, but {other.method} "
                f"has a plan of the value {other.value!r}"
            )
    if "optimal" in (old.status, new.status) or "infeasible" in (old.status, new.status):
        return new if _proof_rank(new) > _proof_rank(old) else old
    plan, limit = old if _value(old) <= _value(new) else new, max(old.limit, new.limit)
    if _bound(plan) >= max(_bound(old), _bound(new)):
        return dataclasses.replace(plan, limit=limit)
    bound = max(_bound(old), _bound(new))
    return dataclasses.replace(
        plan,
        bound=bound,
        status=str(status_of(plan.value is not None, _value(plan), bound)),
        method=", ".join(dict.fromkeys((old.method, new.method))),
        seconds=round(old.seconds + new.seconds, 3),
        limit=limit,
        certificate="",
        checked=False,
    )


def _proof_rank(known: LibraryAnswer) -> tuple[bool, bool, bool]:
    """Return whether an answer is proven, its proof was checked, and has a certificate."""
    return known.status in ("optimal", "infeasible"), known.checked, bool(known.certificate)


def _bound(known: LibraryAnswer) -> float:
    return -math.inf if known.bound is None else known.bound


def _value(known: LibraryAnswer) -> float:
    return math.inf if known.value is None else known.value


def check(entry: Entry, prove_below: float) -> list[str]:
    """Return the flaws of an entry; empty when it holds.

    An answer that was proven in at most `prove_below` seconds is proven again, and its certificate
    checked.
    """
    question, known = entry.question, entry.answer
    problem = question.problem()
    if digest(problem) != entry.data:
        return ["the data built here are not those of the digest"]
    if known is None:
        return []
    flaws: list[str] = []
    if known.leader is not None and known.value is not None:
        plan = Configuration.of(known.leader, known.voters, known.replicas)
        flaws += violations(problem, plan)
        value = objective_value(problem, plan)
        if not _same(value, known.value):
            flaws.append(f"the plan has the value {value!r}, not {known.value!r}")
        if known.bound is not None and known.bound > value * (1 + SAME):
            flaws.append(f"the bound {known.bound!r} is above the value {value!r}")
        if (known.status == "optimal") != (known.gap <= SAME):
            flaws.append(f"a gap of {known.gap:g} does not go with {known.status!r}")
    if known.status in ("optimal", "infeasible") and known.seconds <= prove_below:
        again = solve(problem, "exact")
        if str(again.status) != known.status:
            flaws.append(f"solved again it is {again.status}, not {known.status}")
        elif known.value is not None and not _same(again.objective, known.value):
            flaws.append(f"solved again the value is {again.objective!r}, not {known.value!r}")
        if known.checked:
            check_certificate(again, work=_WORK)
    return flaws


def _same(one: float, other: float) -> bool:
    return abs(one - other) <= SAME * max(abs(one), abs(other))


# ``python -m benchmarks library``: check the answers of the instance library, or improve them


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="evaluate every plan again, and prove "
                      "again what took at most --prove seconds")  # fmt: skip
    what.add_argument("--solve", metavar="NAME", nargs="+", help="answer the questions of these "
                      "names; a better plan or bound is kept")  # fmt: skip
    what.add_argument("--all", action="store_true", help="answer every question that is open")
    add = parser.add_argument
    add("--only", default="", metavar="TEXT", help="only questions whose name contains TEXT")
    for option, seconds, words in (
        ("--prove", 1.0, "--check: prove again what took at most S seconds of CPU (default 1)"),
        ("--time-limit", 10.0, "--solve, --all: seconds for each question (default 10)"),
    ):
        add(option, type=float, metavar="S", default=seconds, help=words)
    add("--method", default="exact", metavar="NAME", help="--solve, --all: method (default exact)")
    add("--library", type=Path, default=LIBRARY, metavar="FILE", help="another library")


def run(asked: argparse.Namespace) -> int:
    """Run the verb and return the exit code."""
    if asked.all or asked.solve:
        return _solve(asked)
    entries = [entry for entry in read(asked.library) if asked.only in entry.question.name]
    if asked.check:
        return _check(entries, asked.prove)
    for entry in entries:
        known = entry.answer
        state = "no answer" if known is None else f"{known.status:10s} gap {100 * known.gap:.2g} %"
        print(f"{entry.question.name:32s} {entry.question.size:5d} sites  {state}")
    found = Counter("none" if e.answer is None else e.answer.status for e in entries)
    print(", ".join(f"{count} {status}" for status, count in sorted(found.items())))
    return FOUND


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
    known = {entry.question.name: entry for entry in read(path)}
    unknown = [name for name in asked.solve or () if name not in known]
    if unknown:
        raise InputError("no such question", field="--solve", value=unknown[0])
    for name in asked.solve or [name for name in known if asked.only in name]:
        question, old = known[name].question, known[name].answer
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
        data = known[name].data or digest(problem)
        known[name] = Entry(question, data, best)
        write(known.values(), path)
        said = f"{name}: {new.status}, gap {100 * best.gap:.2g} %, {new.seconds:g} s"
        print(said, file=sys.stderr, flush=True)
    return FOUND
