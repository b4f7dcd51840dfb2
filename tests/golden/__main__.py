"""Check, renew and retire the answers that stand; compare the speed of two checkouts.

    python -m tests.golden check                          the quick answers, as the test does
    python -m tests.golden check --all                    every answer
    python -m tests.golden check library/tails verbs      of these names only
    python -m tests.golden renew verbs/export --why "…"   write an answer anew, with the reason
    python -m tests.golden retire library/witness --why "…"
    python -m tests.golden since COMMIT                   what differs from the files of a commit
    python -m tests.golden speed ../before                CPU times beside another checkout

A name is FILE or FILE/BEGINNING: all answers of the file whose names begin so. What is renewed or
retired is listed with its reason in ``changes.jsonl``; `since` shows what is not listed there.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.golden.answers import FILES, HERE, ask, differences, known, write

ROOT = HERE.parents[1]
CHANGES = HERE / "changes.jsonl"
QUICK = {"library": 0.03, "nodes": 0.02, "verbs": 0.5, "tables": 0.5}
"""File -> CPU seconds: an answer that took no more is asked for in every run of the tests."""
MEDIAN, SINGLE = 1.15, 1.5

TIMES = """
import inspect, json, time
from benchmarks.exact import speed
older = "keep" in inspect.signature(speed.groups).parameters  # the first commit
for group in speed.groups(keep=False) if older else speed.groups():
    if group.name in {groups!r}:
        for one in group.questions(1) if older else group.questions():
            name, ask, *more = (one.name, one.answer) if older else (*one, lambda *_: None)
            least = float("inf")
            for _ in range({repeat}):
                began = time.process_time()
                ask(float("inf"), *more)
                least = min(least, time.process_time() - began)
            print(json.dumps([name, least]))
"""


def _asked(patterns: list[str], kind: str) -> bool:
    """Return whether a name of the file can be among the patterns."""
    return not patterns or any(p.partition("/")[0] == kind for p in patterns)


def _named(patterns: list[str], kind: str, name: str) -> bool:
    return not patterns or any(p == kind or f"{kind}/{name}".startswith(p) for p in patterns)


def flaws(patterns: list[str], everything: bool = False, quick: float = 1.0) -> Iterator[str]:
    """Yield what differs from the answers that stand.

    Parameters
    ----------
    patterns
        Names; empty: all.
    everything
        Ask for answers that take longer as well.
    quick
        Part of the seconds that a quick answer may take.
    """
    for kind, answers_of in FILES.items():
        if not _asked(patterns, kind):
            continue
        answers = answers_of()
        for name, line in known(kind).items():
            slow = line.seconds > quick * QUICK[kind] and not everything
            if slow or not _named(patterns, kind, name):
                continue
            if name not in answers:
                yield f"{kind}/{name}: missing, and not retired"
            else:
                yield from differences(line.answer, ask(answers[name]).answer, f"{kind}/{name}")


def _change(asked: argparse.Namespace) -> int:
    """Renew or retire answers, and list them with the reason."""
    changes = [json.loads(line) for line in CHANGES.read_text(encoding="utf-8").splitlines()]
    for kind, answers_of in FILES.items():
        if not _asked(asked.names, kind):
            continue
        path = HERE / f"{kind}.jsonl"
        lines = known(kind) if path.exists() else {}
        answers = answers_of() if asked.verb == "renew" else {}
        for name in sorted(answers.keys() | lines.keys()):
            if not _named(asked.names, kind, name):
                continue
            before = lines.pop(name, None)
            if asked.verb == "renew" and name in answers:
                lines[name] = ask(answers[name])
                if before and not list(differences(before.answer, lines[name].answer)):
                    lines[name] = before
                    continue
            if before is not None:
                what = "renewed" if name in lines else "retired"
                changes.append({"name": f"{kind}/{name}", "what": what, "why": asked.why})
                print(f"{kind}/{name}: {what}")
        write(kind, lines)
    text = [json.dumps(change, ensure_ascii=False) for change in changes]
    CHANGES.write_text("".join(f"{line}\n" for line in dict.fromkeys(text)), encoding="utf-8")
    return 0


def _since(commit: str) -> int:
    """Print the answers of a commit that stand no more, and are not listed as changed."""
    listed = {json.loads(line)["name"] for line in CHANGES.read_text(encoding="utf-8").splitlines()}
    found = 0
    for kind in FILES:
        shown = subprocess.run(
            ["git", "show", f"{commit}:tests/golden/{kind}.jsonl"],
            capture_output=True, text=True, check=True, cwd=ROOT,
        )  # fmt: skip
        now = known(kind)
        for name, line in known(kind, shown.stdout).items():
            same = name in now and not list(differences(line.answer, now[name].answer))
            if not same and f"{kind}/{name}" not in listed:
                found += 1
                print(f"{kind}/{name}: {'differs' if name in now else 'missing'}, and not listed")
    return int(found > 0)


def _speed(asked: argparse.Namespace) -> int:
    """Print ratios of least CPU times, this checkout over the other, runs taken in turn."""
    least: dict[tuple[Path, str], float] = {}
    for _ in range(asked.rounds):
        for where in (asked.checkout.resolve(), ROOT):
            own = where / ".venv" / "bin" / "python"
            script = TIMES.format(groups=asked.groups, repeat=asked.repeat)
            run = subprocess.run(
                [own if own.exists() else sys.executable, "-c", script], cwd=where, check=True,
                stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(where)},
            )  # fmt: skip
            for name, seconds in map(json.loads, run.stdout.splitlines()):
                least[where, name] = min(seconds, least.get((where, name), seconds))
    before = {name: s for (where, name), s in least.items() if where != ROOT}
    ratios = {name: least[ROOT, name] / s for name, s in before.items() if (ROOT, name) in least}
    for name, ratio in sorted(ratios.items(), key=lambda item: -item[1])[:10]:
        print(f"{name:40s} {1e3 * before[name]:9.2f} ms before  x {ratio:.2f}")
    median, worst = statistics.median(ratios.values()), max(ratios.values())
    print(f"{len(ratios)} questions, median x {median:.3f}, worst x {worst:.2f}")
    return int(median > MEDIAN or worst > SINGLE)


def run(arguments: list[str] | None = None) -> int:
    """Run a command and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.golden", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    verbs = parser.add_subparsers(dest="verb", required=True)
    check = verbs.add_parser("check")
    check.add_argument("names", nargs="*")
    check.add_argument("--all", action="store_true")
    for verb in ("renew", "retire"):
        change = verbs.add_parser(verb)
        change.add_argument("names", nargs="+")
        change.add_argument("--why", required=True)
    verbs.add_parser("since").add_argument("commit")
    speed = verbs.add_parser("speed")
    speed.add_argument("checkout", type=Path)
    speed.add_argument("--groups", nargs="+", default=["small", "100 x 200"])
    speed.add_argument("--repeat", type=int, default=3)
    speed.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args(arguments)
    if asked.verb in ("renew", "retire"):
        return _change(asked)
    if asked.verb == "since":
        return _since(asked.commit)
    if asked.verb == "speed":
        return _speed(asked)
    found = list(flaws(asked.names, asked.all or bool(asked.names)))
    print(*found, sep="\n")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(run())
