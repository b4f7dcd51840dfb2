"""The largest numbers accepted: larger ones are refused, and with these every score is finite."""

from __future__ import annotations

import math
import warnings
from pathlib import Path

import numpy as np
import pytest

import placement
from placement import Instance, Operation, Prices, Problem
from placement.errors import InputError
from placement.io import read_counts, read_rtt
from placement.io.rtt_distributions import read_distributions
from placement.overtime.replay import Trace
from placement.support.checks import LARGEST
from placement.tail.histograms import of_samples, of_weights

N = 5
OVER = float(np.nextafter(LARGEST, math.inf))


def world(rtt: float, count: float, *, spread: bool = False) -> Instance:
    """A line of sites whose longest RTT is `rtt`; `spread`: the others are ordinary."""
    steps = np.arange(N, dtype=float)
    between = np.abs(steps[:, np.newaxis] - steps) * (rtt / (N - 1))
    if spread:
        between = np.minimum(
            between, np.where(between >= rtt, rtt, 10.0 * np.abs(steps - steps[:, np.newaxis]))
        )
    names = tuple("abcde")
    counts = np.ones((N, 5))
    counts[0] = count
    return Instance(names, names, between, between, counts)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"counts": np.full((N, 5), 1e308)},
         "counts: out of range at .*client 'a', operation 'weak_read': got 1e\\+308.*<= 1e\\+18"),
        ({"client_rtt": np.full((N, N), 1e160)}, "client_rtt: out of range at client 'a'"),
        ({"site_rtt": OVER * (1 - np.eye(N))}, "site_rtt: out of range at site 'a', site 'b'"),
        ({"prices": Prices(np.full(N, 1e300))}, r"prices\.storage: out of range at site 'a'"),
        ({"prices": Prices(np.ones(N), OVER * (1 - np.eye(N)))}, r"prices\.transfer: out of range"),
        ({"prices": Prices(np.ones(N), None, 1e200)}, r"prices\.written_gb: out of range"),
    ],
)  # fmt: skip
def test_too_large_is_refused_with_the_cell(change: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        world(100.0, 1.0).replace(**change)


def test_too_large_elsewhere() -> None:
    with pytest.raises(InputError, match=r"near: bad coefficient .*<= 1e"):
        Operation("read", near=1e300)
    priced = world(100.0, 1.0).replace(prices=Prices(np.ones(N)))
    with pytest.raises(InputError, match="cost_weight: out of range"):
        Problem(priced, replicas=3, voters=3, cost_weight=1e300)
    with pytest.raises(InputError, match="counts: out of range"):
        Trace(("x",), ("1",), np.full((1, 1, N, 5), 1e308))


@pytest.mark.parametrize("cell", ["1e308", "1e160", repr(OVER)])
def test_too_large_in_a_file_names_the_row(tmp_path: Path, cell: str) -> None:
    (tmp_path / "n.csv").write_text(f"client,weak_read\na,1\nb,{cell}\n")
    with pytest.raises(InputError, match=r"n\.csv, row 3: weak_read: too large: .*at most 1e\+18"):
        read_counts(tmp_path / "n.csv")
    (tmp_path / "r.csv").write_text(f"x,a,b\na,0,{cell}\nb,1,0\n")
    with pytest.raises(InputError, match=r"r\.csv, row 2: b: too large"):
        read_rtt(tmp_path / "r.csv")


METHODS = ("exact", "exhaustive", "local-search", "kq", "qk", "best-of")


@pytest.mark.filterwarnings("ignore::placement.errors.UnitsWarning", "error::RuntimeWarning")
@pytest.mark.parametrize("rtt", [LARGEST, 1.0])
@pytest.mark.parametrize("count", [LARGEST, 1.0])
@pytest.mark.parametrize("spread", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_methods_end_with_the_largest_numbers(
    method: str, rtt: float, count: float, spread: bool
) -> None:
    """No endless loop, no overflow, and one optimum, at the limits of the numbers."""
    problem = Problem(world(rtt, count, spread=spread), replicas=3, voters=3)
    plan = placement.solve(problem, method=method, time_limit=20)
    assert plan.found
    assert math.isfinite(plan.objective)
    if method in ("exact", "exhaustive"):
        best = placement.solve(problem, method="exhaustive")
        assert plan.objective == pytest.approx(best.objective, rel=1e-9)


def test_histograms_with_huge_rtts() -> None:
    """An RTT beyond the grid is overflow, whatever its size."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for far in (1e19, 1e300, 1.7e308):
            assert of_weights([1.0, far], [3, 1], width=0.5, bins=4).tolist() == [0, 0, 0.75, 0]
            assert of_samples([1.0, far], width=1e-3, bins=4).tolist() == [0, 0, 0, 0]
    edges = of_samples(np.nextafter(np.arange(8) + 0.5, 0), width=1.0, bins=8)
    assert edges.sum() == 1


def test_a_histogram_file_with_a_huge_rtt(tmp_path: Path) -> None:
    rows = "".join(f"{a},{b},5,1\n" for a in "abcde" for b in "abcde" if a != b)
    (tmp_path / "h.csv").write_text("src,dst,rtt,count\n" + rows + "a,b,1e308,1\n")
    with pytest.raises(InputError, match=r"h\.csv, row 22: rtt: too large"):
        read_distributions(tmp_path / "h.csv", world(20.0, 1.0))
