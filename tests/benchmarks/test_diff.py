"""`diff` finds what got worse, and does not take noise or a slower machine for it."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from benchmarks.harness.compare_runs import compare, diff_text, median_interval
from placement.errors import InputError
from placement.report.result_file import Results

METHODS = {"ref": 0.010, "fast": 0.002, "slow": 0.2}


def results(
    *,
    machine: float = 1.0,
    noise: float = 0.0,
    slower: dict[str, float] | None = None,
    seed: int = 0,
    groups: int = 12,
) -> Results:
    """A run on a machine `machine` times as slow, with relative timing noise."""
    rng = random.Random(seed)
    rows: list[dict[str, Any]] = []
    for group in range(groups):
        for method, base in METHODS.items():
            level = base * machine * (slower or {}).get(method, 1.0)
            again = [level * (1 + noise * rng.random()) for _ in range(5)]
            rows.append(
                {
                    "key": f"{group}/{method}",
                    "label": f"{group}/{method}",
                    "group": str(group),
                    "run": 1,
                    "cell": {"kind": "solve", "method": method},
                    "outcome": "ok",
                    "status": "optimal" if method == "slow" else "feasible",
                    "objective": 100.0,
                    "bound": 100.0 if method == "slow" else None,
                    "seconds": sorted(again)[2],
                    "seconds_again": again,
                    "calibration_seconds": 0.001 * machine,
                }
            )
    return Results(({"id": 1, "reference": "ref"},), tuple(rows))


def changed(results: Results, position: int, **changes: object) -> Results:
    rows = list(results.rows)
    rows[position] = {**rows[position], **changes}
    return Results(results.runs, tuple(rows))


def test_a_slower_machine_is_not_slower_code() -> None:
    """Three times slower throughout: nothing is reported."""
    found = compare(results(noise=0.1), results(machine=3.0, noise=0.1, seed=1))
    assert found.changes == ()
    assert found.timed == 36


@pytest.mark.parametrize("seed", range(20))
def test_noise_is_not_a_change(seed: int) -> None:
    """Repeats that scatter by a third give no finding."""
    found = compare(results(noise=0.33, seed=seed), results(noise=0.33, seed=seed + 100))
    assert found.changes == ()


def test_a_slower_method_is_found() -> None:
    """Half as fast again, on all questions: the method as a whole."""
    found = compare(results(noise=0.05), results(noise=0.05, seed=1, slower={"fast": 1.6}))
    assert [(change.kind, change.what) for change in found.worse] == [
        ("slower", "all questions · fast")
    ]
    back = compare(results(noise=0.05, slower={"fast": 1.6}), results(noise=0.05, seed=1))
    assert not back.worse
    assert back.changes


def test_a_slower_reference_is_found_by_the_calibration() -> None:
    """When the unit itself got slower, everything else looks faster; the calibration tells."""
    found = compare(results(), results(slower={"ref": 2.0}))
    assert [change.what for change in found.worse] == ["all questions · ref"]


@pytest.mark.parametrize(
    ("position", "changes", "kind"),
    [
        (0, {"objective": 101.0}, "value"),
        (0, {"objective": None, "status": "unknown"}, "value"),
        (2, {"status": "feasible", "bound": 90.0}, "proof"),
        (2, {"bound": 90.0, "status": "feasible"}, "gap"),
        (1, {"outcome": "timeout", "reason": "killed"}, "outcome"),
        (2, {"bound": 120.0}, "contradiction"),
    ],
)
def test_worse_answers(position: int, changes: dict[str, object], kind: str) -> None:
    """A worse value, a lost proof, a larger gap, no answer, a false bound: no statistics needed."""
    found = compare(results(), changed(results(), position, **changes))
    assert kind in {change.kind for change in found.worse}
    assert kind in diff_text(found)


def test_cells_of_one_file_only_are_told() -> None:
    """Cells that one file lacks are listed, not passed over."""
    short = Results(results().runs, results().rows[:-1])
    found = compare(short, results())
    assert found.only_after == ("11/slow",)
    assert compare(results(), short).only_before == ("11/slow",)


def test_nothing_in_common_is_an_error() -> None:
    """Two files about different things cannot be compared."""
    with pytest.raises(InputError, match="no cell in common"):
        compare(results(), Results((), ()))


@pytest.mark.parametrize("n", range(6, 40))
def test_interval_covers_with_its_level(n: int) -> None:
    """The order statistics chosen are the narrowest that reach 95 per cent, by the binomial law."""
    interval = median_interval(list(range(1, n + 1)))
    assert interval is not None
    low = interval[0]

    def coverage(k: int) -> float:
        return 1 - 2 * sum(math.comb(n, i) for i in range(k)) / 2**n

    assert coverage(int(low)) >= 0.95 > coverage(int(low) + 1)
    assert interval[1] == n + 1 - low
