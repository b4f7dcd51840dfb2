"""Comparison of two files of results: cells that got slower or worse, beyond noise.

Seconds of two runs are never compared: machines differ, and so does one machine from hour to hour.
The time of a method on a question is taken as a multiple of the reference method's time on the same
question in the same run. Between two runs that multiple changes by a factor, and

- a *cell* is called slower when the factor exceeds the threshold and, beyond that, the intervals
  [least, most] of the repeated timings, in units of the reference, do not overlap: a stroke of bad
  luck hits one repeat, not all;
- a *method* is called slower when the factor exceeds the threshold for its questions as a whole:
  the lower end of the distribution-free confidence interval of the median factor (order statistics
  of a binomial law, 95 %) lies above it. That needs six questions at least.

The reference is held against the calibration loop that every cell times in its own process.

What is not a time needs no statistics: a proof that is gone, a larger gap, a worse value, a cell
that no longer answers, a bound that is wrong.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from placement.errors import InputError
from placement.report.result_file import Results, best_known, contradictions, row_gap
from placement.text import escape, table

__all__ = ["Change", "Difference", "compare", "diff_text", "median_interval"]

_VALUE = 1e-9
_GAP = 1e-6
_LEAST_SECONDS = 2e-4
"""Below this a timing is mostly that of the clock and the dispatch; such cells are not judged."""

_PROVEN = ("optimal", "infeasible")


@dataclass(frozen=True, slots=True)
class Change:
    """Difference of a value between two files of results.

    Attributes
    ----------
    what
        The cell's label, or the method.
    kind
        "slower", "faster", "value", "gap", "proof", "outcome" or "contradiction".
    text
        From what to what.
    worse
        Whether that is bad.
    """

    what: str
    kind: str
    text: str
    worse: bool


@dataclass(frozen=True, slots=True)
class Difference:
    """All differences between two files of results.

    Attributes
    ----------
    changes
        Worse ones first.
    compared
        Cells that both files answer.
    timed
        Cells whose times could be compared.
    only_before, only_after
        Labels of cells that one file has alone.
    reference
        The unit of time.
    """

    changes: tuple[Change, ...]
    compared: int
    timed: int
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]
    reference: str

    @property
    def worse(self) -> tuple[Change, ...]:
        """Return the changes for the worse."""
        return tuple(change for change in self.changes if change.worse)


def compare(
    before: Results,
    after: Results,
    *,
    reference: str | None = None,
    threshold: float = 1.25,
) -> Difference:
    """Compare two files of results.

    Parameters
    ----------
    before, after
        As read.
    reference
        Method whose time is the unit; None: the one that the later run's suite names.
    threshold
        Factor below which a change of time is noise; > 1.

    Raises
    ------
    InputError
        When the files have no cell in common.
    """
    if reference is None:
        reference = str(after.runs[-1].get("reference", "")) if after.runs else ""
    old = {row["key"]: row for row in before.rows}
    new = {row["key"]: row for row in after.rows}
    common = [key for key in old if key in new]
    if not common:
        raise InputError(
            "no cell in common",
            source=f"{before.source}, {after.source}",
            expected="two runs of the same suite under the same limits",
        )
    changes: list[Change] = []
    known = best_known(before.rows), best_known(after.rows)
    for key in common:
        changes.extend(_quality(old[key], new[key], known))
    factors, slower = _times(before, after, common, reference, threshold)
    changes.extend(slower)
    changes.extend(_methods(factors, threshold))
    changes.extend(_reference_itself(before, after, common, reference, threshold))
    earlier = set(contradictions(before.rows))
    changes.extend(
        Change(line, "contradiction", "a proven bound above a value", line not in earlier)
        for line in contradictions(after.rows)
    )
    return Difference(
        tuple(sorted(changes, key=lambda change: (not change.worse, change.kind, change.what))),
        len(common),
        sum(map(len, factors.values())),
        tuple(old[key]["label"] for key in old if key not in new),
        tuple(new[key]["label"] for key in new if key not in old),
        reference,
    )


def _quality(
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    known: tuple[Mapping[str, tuple[float, float]], Mapping[str, tuple[float, float]]],
) -> list[Change]:
    label = new["label"]
    if old["outcome"] != new["outcome"]:
        why = f" ({new['reason']})" if new.get("reason") else ""
        return [
            Change(label, "outcome", f"{old['outcome']} → {new['outcome']}{why}",
                   old["outcome"] == "ok")
        ]  # fmt: skip
    if new["outcome"] != "ok" or "status" not in new:
        return []
    changes = []
    if (old["status"] in _PROVEN) != (new["status"] in _PROVEN):
        changes.append(
            Change(label, "proof", f"{old['status']} → {new['status']}", old["status"] in _PROVEN)
        )
    a, b = old["objective"], new["objective"]
    if (a is None) != (b is None):
        changes.append(
            Change(label, "value", "a plan → none" if b is None else "none → a plan", b is None)
        )
    elif a is not None and abs(b - a) > _VALUE * abs(a):
        changes.append(Change(label, "value", f"{a:.9g} → {b:.9g}", b > a))
    gaps = row_gap(old, known[0]), row_gap(new, known[1])
    if gaps[0] is not None and gaps[1] is not None and abs(gaps[1] - gaps[0]) > _GAP:
        changes.append(
            Change(label, "gap", f"{100 * gaps[0]:.3g} % → {100 * gaps[1]:.3g} %",
                   gaps[1] > gaps[0])
        )  # fmt: skip
    return changes


def _timings(row: Mapping[str, Any]) -> list[float]:
    """Seconds of a row's runs: the repeats, or the one there was."""
    return list(row.get("seconds_again") or [row["seconds"]])


def _in_units(results: Results, reference: str) -> dict[str, tuple[float, float, float]]:
    """Key -> (least, median, most) of a cell's time in units of the reference in the same run.

    The spread is that of both: least over most, median over median, most over least.
    """
    unit = {
        (row["group"], row.get("run")): _timings(row)
        for row in results.rows
        if row["outcome"] == "ok" and row["cell"].get("method") == reference
    }
    found = {}
    for row in results.rows:
        base = unit.get((row["group"], row.get("run")))
        if row["outcome"] != "ok" or base is None or row["cell"].get("method") == reference:
            continue
        seconds = _timings(row)
        if statistics.median(seconds) >= _LEAST_SECONDS and min(base) > 0:
            found[row["key"]] = (
                min(seconds) / max(base),
                statistics.median(seconds) / statistics.median(base),
                max(seconds) / min(base),
            )
    return found


def _times(
    before: Results,
    after: Results,
    common: Sequence[str],
    reference: str,
    threshold: float,
) -> tuple[dict[str, list[float]], list[Change]]:
    """Factors by method, and the cells that changed beyond noise."""
    old, new = _in_units(before, reference), _in_units(after, reference)
    rows = {row["key"]: row for row in after.rows}
    factors: defaultdict[str, list[float]] = defaultdict(list)
    changes = []
    for key in common:
        if key not in old or key not in new:
            continue
        a, b = old[key], new[key]
        factor = b[1] / a[1]
        factors[rows[key]["cell"]["method"]].append(factor)
        # one repeat is no interval: then only a change by the square of the threshold counts
        least = threshold if a[0] < a[2] and b[0] < b[2] else threshold**2
        slower = factor > least and b[0] > a[2]
        faster = factor < 1 / least and b[2] < a[0]
        if slower or faster:
            changes.append(
                Change(
                    rows[key]["label"],
                    "slower" if slower else "faster",
                    f"{a[1]:.3g} → {b[1]:.3g} times {reference} (×{factor:.2f})",
                    slower,
                )
            )
    return dict(factors), changes


def median_interval(values: Sequence[float], level: float = 0.95) -> tuple[float, float] | None:
    """Confidence interval of a median by order statistics, without any law of the values.

    [x_(k), x_(n+1−k)] covers the median with probability 1 − 2·P(Bin(n, ½) < k); the largest k is
    taken for which that is at least `level`. None when even k = 1 does not reach it (n < 6 at
    95 %).

    Examples
    --------
    >>> median_interval([1, 2, 3, 4, 5, 6]), median_interval([1, 2, 3, 4, 5])
    ((1, 6), None)
    """
    n = len(values)
    ordered = sorted(values)
    below, best = 0.0, 0
    for k in range(1, n // 2 + 1):
        below += math.comb(n, k - 1) / 2**n
        if 1 - 2 * below < level:
            break
        best = k
    return (ordered[best - 1], ordered[n - best]) if best else None


def _methods(factors: Mapping[str, Sequence[float]], threshold: float) -> list[Change]:
    changes = []
    for method, values in factors.items():
        interval = median_interval(values)
        if interval is None:
            continue
        slower, faster = interval[0] > threshold, interval[1] < 1 / threshold
        if slower or faster:
            changes.append(
                Change(
                    f"all questions · {method}",
                    "slower" if slower else "faster",
                    f"×{statistics.median(values):.2f} in the median of {len(values)} questions "
                    f"(95 %: ×{interval[0]:.2f} to ×{interval[1]:.2f})",
                    slower,
                )
            )
    return changes


def _reference_itself(
    before: Results, after: Results, common: Sequence[str], reference: str, threshold: float
) -> list[Change]:
    """Hold the reference against the calibration loop: if it moved, all other factors did."""
    old, new = ({row["key"]: row for row in found.rows} for found in (before, after))
    factors = []
    for key in common:
        pair = old[key], new[key]
        if any(
            row["outcome"] != "ok"
            or row["cell"].get("method") != reference
            or not row.get("calibration_seconds")
            for row in pair
        ):
            continue
        a, b = (statistics.median(_timings(row)) / row["calibration_seconds"] for row in pair)
        factors.append(b / a)
    return [
        Change(f"reference: {change.what}", change.kind, change.text, change.worse)
        for change in _methods({reference: factors}, threshold)
    ]


def diff_text(difference: Difference) -> str:
    """Return the difference as text, worse things first."""
    parts = [
        f"{difference.compared} cells in both files, {difference.timed} timed against "
        f"{difference.reference or 'no reference'}; {len(difference.worse)} worse, "
        f"{len(difference.changes) - len(difference.worse)} better"
    ]
    for title, worse in (("Worse", True), ("Better", False)):
        rows = [
            (change.kind, escape(change.what), change.text)
            for change in difference.changes
            if change.worse is worse
        ]
        if rows:
            parts.append(f"{title}\n" + table(("what", "where", "change"), rows, width=160))
    for title, labels in (
        ("Only in the first", difference.only_before),
        ("Only in the second", difference.only_after),
    ):
        if labels:
            shown = "\n".join(f"  {escape(label)}" for label in labels[:20])
            more = f"\n  and {len(labels) - 20} more" if len(labels) > 20 else ""
            parts.append(f"{title}: {len(labels)} cells\n{shown}{more}")
    return "\n\n".join(parts)
