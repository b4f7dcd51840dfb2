"""Losses of a leader, a site or a follower, and load up to saturation: model against etcd."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.harness.result_files import Row
from benchmarks.live.emulated_wan import EmulatedWan
from benchmarks.live.etcd.clients import Measured
from benchmarks.live.etcd.world import EtcdBench
from benchmarks.live.layouts import Layout, azure_part, planned
from benchmarks.live.live_world import PUT, configured, predicted, predicted_after_loss
from benchmarks.live.load_rows import load_row
from benchmarks.live.programs import awaited
from placement import Instance
from placement.evaluation.losses import score_after

__all__ = ["load", "losses"]

_PUT = ("put",)


def losses(quick: bool) -> Iterator[Row]:
    """Yield a row per loss: time without service, who leads then, latency before and after.

    Columns: layout, loss, site, before (leader), after (leader), best and worst (leaders by the
    model, with latencies), gap (s without a successful write anywhere), predicted and measured
    (mean ms of writes afterwards, with the leader that was elected), clients (predicted and
    measured of each).
    """
    instance = azure_part(operations=[PUT])
    tried = (
        [planned(instance, 4, 3)] if quick else [planned(instance, 5, 3), planned(instance, 7, 5)]
    )
    with EtcdBench(instance) as bench:
        for layout in tried:
            follower = _quorum_member(instance, layout)
            kinds = [("server killed", layout.leaders[0])]
            if not quick:
                kinds += [("site cut off", layout.leaders[0])]
                kinds += [("server killed", follower), ("site cut off", follower)]
            for kind, site in kinds:
                yield _loss(bench, layout, kind, site, 12 if quick else 20)


def _quorum_member(instance: Instance, layout: Layout) -> str:
    """Return the voter closest to the leader."""
    row = instance.site_rtt[instance.sites.index(layout.leaders[0])]
    others = [site for site in layout.voters if site != layout.leaders[0]]
    return min(others, key=lambda site: row[instance.sites.index(site)])


def _loss(bench: EtcdBench, layout: Layout, kind: str, site: str, seconds: float) -> Row:
    cluster = bench.start(layout, layout.leaders[0])
    clients = bench.clients(bench.mix(layout, *_PUT), workers=2, pause="20ms", attempt="2s",
                            patience="60s")  # fmt: skip
    time.sleep(6)
    happened = time.time()
    if kind == "site cut off":
        bench.wan.cut_off(site)
        cluster.forget(site)
    else:
        cluster.kill(site)
    # the new leader, once there is one; the rest of the time is for measuring
    after = awaited(
        lambda: cluster.deployment().leaders, lambda found: found not in ((), (site,)), 60
    )[0]
    time.sleep(seconds)
    clients.end()
    found, missing = clients.finish(60)
    assert missing == 0, f"{missing} acknowledged writes cannot be read"
    if kind == "site cut off":
        bench.wan.reconnect(site)
    again = _service_again(found, happened)
    expected = predicted_after_loss(bench.instance, site, after, layout.voters, layout.replicas)
    late = [one for one in found if one.start > again + 4 and one.done]
    measured = {
        client: float(np.mean([one.ms for one in late if one.client == client]))
        for client in bench.instance.clients
    }
    early = [one for one in found if one.start + one.ms / 1000 < happened]
    problem, plan = configured(bench.instance, layout.leaders[0], layout.voters, layout.replicas)
    lost = bench.instance.sites.index(site)
    ranked = sorted(score_after(problem, plan, [lost]).items(), key=lambda item: item[1])
    operations = problem.demand.operations
    return {
        "layout": layout.name,
        "loss": kind,
        "site": site,
        "before": layout.leaders[0],
        "after": after,
        "best": bench.instance.sites[ranked[0][0]],
        "best ms": round(ranked[0][1] / operations, 2),
        "worst": bench.instance.sites[ranked[-1][0]],
        "worst ms": round(ranked[-1][1] / operations, 2),
        "gap": round(again - happened, 2),
        "failed": sum(not one.done for one in found),
        "again": sum(one.attempts > 1 for one in found),
        "predicted before": round(float(np.mean(list(predicted(
            bench.instance, layout.leaders[0], layout.voters, layout.replicas).values()))), 2),
        "measured before": round(_mean_of_clients(early, bench.instance), 2),
        "predicted": round(float(np.mean(list(expected.values()))), 2),
        "measured": round(float(np.mean(list(measured.values()))), 2),
        "clients": {c: [round(expected[c], 2), round(measured[c], 2)] for c in expected},
    }  # fmt: skip


def _mean_of_clients(found: Sequence[Measured], instance: Instance) -> float:
    return float(
        np.mean([np.mean([one.ms for one in found if one.client == c]) for c in instance.clients])
    )


def _service_again(found: Sequence[Measured], happened: float) -> float:
    """Return when the first write that was issued after a loss was acknowledged anywhere."""
    return min(one.start + one.ms / 1000 for one in found if one.done and one.start > happened)


def load(quick: bool) -> Iterator[Row]:
    """Yield a row per number of concurrent clients: writes a second, and their latency.

    Columns: those of :func:`load_row`, and whether the leader stayed.
    """
    instance = azure_part(operations=[PUT])
    layout = planned(instance, 5, 3)
    steps = (1, 64) if quick else (1, 4, 16, 64, 128, 256, 512, 1024)
    with EtcdBench(instance) as bench:
        bench.start(layout, layout.leaders[0])
        expected = predicted(instance, layout.leaders[0], layout.voters, layout.replicas)
        by_place = {client: ms for (client, _), ms in expected.items()}
        bench.measure(bench.mix(layout, *_PUT), 60, count=5)
        assert isinstance(bench.wan, EmulatedWan)
        for workers in steps:
            bench.wan.statistics()
            found = bench.measure(
                bench.mix(layout, *_PUT), 120, seconds=4 if quick else 10, workers=workers,
                patience="60s", attempt="30s", warm=2,
            )  # fmt: skip
            ended: dict[str, list[tuple[float, float]]] = {}
            for one in found:
                ended.setdefault(one.client, []).append((one.start + one.ms / 1000, one.ms))
            late = bench.wan.statistics()["mean"]
            yield {
                **load_row(layout, workers * len(instance.clients), by_place, ended, late),
                "same leader": bench.leader() == layout.leaders[0],
            }
