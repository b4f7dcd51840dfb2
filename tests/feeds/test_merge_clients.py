"""Merged clients: the bound holds for every plan, and the merged ones use the same replica."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from placement import InputError, Instance, Problem
from placement.cli import main
from placement.io import load_instance
from placement.io.merge_clients import merge_clients
from placement.model.configuration import Configuration
from placement.model.operations import Operation
from placement.plan import objective_value


def world(seed: int, relayed: bool, intervals: int = 1) -> Instance:
    """Twenty clients around six places: three are one client, the others differ by some ms."""
    rng = np.random.default_rng(seed)
    places = rng.integers(5, 150, (6, 5)).astype(float)
    rtt = places[rng.integers(0, 6, 20)] + rng.integers(0, 6, (intervals, 20, 5))
    rtt[:, :3] = rtt[:, :1]
    between = rng.integers(5, 150, (5, 5)).astype(float)
    np.fill_diagonal(between, 0)
    kinds = (
        Operation("read", near=1, relay=float(relayed)),
        Operation("write", direct=1.5, quorum=1),
    )
    return Instance(
        tuple("abcde"), tuple(f"c{i}" for i in range(20)), rtt if intervals > 1 else rtt[0],
        between, rng.integers(0, 50, (intervals, 20, 2)), kinds,
    )  # fmt: skip


@pytest.mark.parametrize("intervals", [1, 2])
@pytest.mark.parametrize("relayed", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_no_plan_changes_by_more_than_the_bound(seed: int, relayed: bool, intervals: int) -> None:
    full = world(seed, relayed, intervals)
    found = merge_clients(full, 6.0)
    merged = found.instance
    assert len(merged.clients) < found.before == 20
    assert merged.counts.sum() == full.counts.sum()
    assert found.bound <= 6.0 * 1.5
    total = full.counts.sum()
    for sites in combinations(range(5), 3):
        for leader in sites:
            plan = Configuration.of(leader, sites, sites)
            means = [
                objective_value(Problem(one, replicas=3, voters=3), plan) / total
                for one in (full, merged)
            ]
            assert abs(means[0] - means[1]) <= found.bound * (1 + 1e-9)


def test_clients_with_the_same_rtts_cost_nothing() -> None:
    full = world(1, relayed=True)
    found = merge_clients(full, 0.0)
    assert found.bound == 0.0
    assert len(set(found.groups[:3].tolist())) == 1
    assert found.instance.provenance[-1].startswith("20 clients were merged into")


def test_clients_that_use_other_replicas_stay_apart_where_reads_are_relayed() -> None:
    rtt = np.array([[10.0, 11.0], [11.0, 10.0]])
    for relayed, left in ((False, 1), (True, 2)):
        kinds = (Operation("read", near=1, relay=float(relayed)),)
        one = Instance(("a", "b"), ("x", "y"), rtt, [[0, 90.0], [90, 0]], [[1.0], [1]], kinds)
        assert len(merge_clients(one, 5.0).instance.clients) == left


def test_the_verb_prints_the_bound_and_keeps_it(
    tmp_path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sites.csv").write_text("site,a,b\na,0,80\nb,80,0\n")
    (tmp_path / "clients.csv").write_text("client,a,b\nx,10,90\ny,11,91\nz,95,12\n")
    (tmp_path / "counts.csv").write_text("client,strong_read\nx,5\ny,1\nz,4\n")
    asked = [
        *("import", str(tmp_path / "sites.csv"), "--client-rtt", str(tmp_path / "clients.csv")),
        *("--counts", str(tmp_path / "counts.csv"), "-o", str(tmp_path / "mine")),
    ]
    assert main([*asked, "--merge-clients", "2"]) == 0
    said = "3 clients were merged into 2: the mean latency of any plan differs by at most 0.1 ms"
    assert said in capsys.readouterr().out
    merged = load_instance(tmp_path / "mine")
    assert merged.clients == ("x", "z")
    assert merged.counts[
        0, :, [o.name for o in merged.operations].index("strong_read")
    ].tolist() == [6, 4]
    assert said in merged.provenance[-1]
    assert main([*asked, "--force", "--merge-clients", "-1"]) == 1


def test_what_the_bound_does_not_cover_is_refused() -> None:
    with pytest.raises(InputError, match="--merge-clients"):
        merge_clients(world(0, relayed=False), float("nan"))
    own = world(0, relayed=False).replace(protocol="leases")
    with pytest.raises(InputError, match="no bound is known"):
        merge_clients(own, 1.0)
