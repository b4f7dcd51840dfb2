"""Comparison of two files of results: methods that got slower and answers that got worse.

Seconds of two runs are never compared: machines differ, and so does one machine from hour to hour.
The time of a method on a question is taken as a multiple of the reference method's time on the same
question in the same run; the reference's, as one of the calibration loop that every cell times in
its own process. Between two runs that multiple changes by a factor. A method is called slower when
its factor exceeds the threshold for its questions as a whole: the lower end of the
distribution-free confidence interval of the median factor (order statistics of a binomial law,
95 %) lies above it. That needs six questions at least.

What is not a time needs no statistics: a proof that is gone, a larger gap, a worse value, a cell
that no longer answers, a bound that is wrong.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from benchmarks.harness.result_rows import Results, best_known, contradictions, row_gap
from placement.errors import InputError
from placement.text import escape, table

_VALUE, _GAP = 1e-9, 1e-6
_LEAST_SECONDS = 2e-4
"""Below this a timing is mostly that of the clock and the dispatch; such cells are not judged."""

_PROVEN = ("optimal", "infeasible")
Row = Mapping[str, Any]


class Change(NamedTuple):
    """Difference between two files of results: of a cell or method, from what to what."""

    what: str
    kind: str
    text: str
    worse: bool


class Difference(NamedTuple):
    """All differences between two files of results, worse ones first, and what was compared.

    `compared` counts the cells that both files answer, `timed` those whose times were compared;
    `reference` is the unit of time.
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
    """Compare two files of results; InputError when they have no cell in common.

    The unit of time is the reference method's, by default that of the later run's suite. A change
    of time below the threshold, a factor > 1, is noise.
    """
    if reference is None:
        reference = after.reference
    old, new = ({row["key"]: row for row in found.rows} for found in (before, after))
    common = [key for key in old if key in new]
    if not common:
        raise InputError(
            "no cell in common",
            source=f"{before.source}, {after.source}",
            expected="two runs of the same suite under the same limits",
        )
    known = best_known(before.rows), best_known(after.rows)
    changes = [change for key in common for change in _quality(old[key], new[key], known)]
    units = _in_units(before, reference), _in_units(after, reference)
    factors: defaultdict[str, list[float]] = defaultdict(list)
    for key in common:
        if key in units[0] and key in units[1]:
            factors[new[key]["cell"]["method"]].append(units[1][key] / units[0][key])
    changes.extend(_methods(factors, threshold))
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
    old: Row,
    new: Row,
    known: tuple[Mapping[str, tuple[float, float]], Mapping[str, tuple[float, float]]],
) -> Iterator[Change]:
    label = new["label"]
    if old["outcome"] != new["outcome"]:
        why = f" ({new['reason']})" if new.get("reason") else ""
        text = f"{old['outcome']} → {new['outcome']}{why}"
        yield Change(label, "outcome", text, old["outcome"] == "ok")
    elif new["outcome"] == "ok" and "status" in new:
        proven = old["status"] in _PROVEN
        if proven != (new["status"] in _PROVEN):
            yield Change(label, "proof", f"{old['status']} → {new['status']}", proven)
        a, b = old["objective"], new["objective"]
        if (a is None) != (b is None):
            text = "a plan → none" if b is None else "none → a plan"
            yield Change(label, "value", text, b is None)
        elif a is not None and abs(b - a) > _VALUE * abs(a):
            yield Change(label, "value", f"{a:.9g} → {b:.9g}", b > a)
        x, y = row_gap(old, known[0]), row_gap(new, known[1])
        if x is not None and y is not None and abs(y - x) > _GAP:
            yield Change(label, "gap", f"{100 * x:.3g} % → {100 * y:.3g} %", y > x)


def _seconds(row: Row) -> float:
    """Median of the seconds of a row's runs."""
    return float(statistics.median(row.get("seconds_again") or [row["seconds"]]))


def _in_units(results: Results, reference: str) -> dict[str, float]:
    """Key -> time in units of the reference in the same run; the reference's in calibrations."""
    answered = [row for row in results.rows if row["outcome"] == "ok" and "seconds" in row]
    unit = {
        (row["group"], row.get("run")): _seconds(row)
        for row in answered
        if row["cell"].get("method") == reference
    }
    found = {}
    for row in answered:
        base = unit.get((row["group"], row.get("run")))
        if row["cell"].get("method") == reference:
            base = row.get("calibration_seconds")
        if base and _seconds(row) >= _LEAST_SECONDS:
            found[row["key"]] = _seconds(row) / base
    return found


def _methods(factors: Mapping[str, Sequence[float]], threshold: float) -> Iterator[Change]:
    from scipy.stats import quantile_test

    for method, values in factors.items():
        low, high = quantile_test(values, p=0.5).confidence_interval(0.95)  # below six: not numbers
        if low > threshold or high < 1 / threshold:
            slower = bool(low > threshold)
            yield Change(
                f"all questions · {method}",
                "slower" if slower else "faster",
                f"×{statistics.median(values):.2f} in the median of {len(values)} questions "
                f"(95 %: ×{low:.2f} to ×{high:.2f})",
                slower,
            )


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
