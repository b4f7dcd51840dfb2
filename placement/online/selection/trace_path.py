"""A sample path from a user's own trace: arrivals, clients, groups and sizes are the trace's."""

from __future__ import annotations

import dataclasses
import zlib

import numpy as np

from placement.errors import InputError
from placement.online.request_trace import RequestTrace
from placement.online.selection.cluster import ServerCluster
from placement.online.selection.sample_path import ServerSamplePath, draw
from placement.support.checks import flag, instance_of

__all__ = ["path_of_trace"]


def path_of_trace(
    cluster: ServerCluster,
    trace: RequestTrace,
    seed: int,
    *,
    exponential: bool = True,
    rescale: bool = False,
) -> ServerSamplePath:
    """Return the sample path of a trace on a cluster.

    Parameters
    ----------
    cluster
        Servers, groups, RTTs, speeds; its arrivals, demand, popularity, records and update share
        are not used. Client k of the trace is client k of the cluster.
    trace
        From :func:`placement.online.request_trace.read_trace`. A key belongs to the group
        CRC-32(name) modulo the number of groups.
    seed
        Of everything that the trace does not say: speeds, extra copies, random ties, and work.
    exponential
        Whether the work is the size over the mean size times an exponential of unit mean; else the
        size over the mean size alone.
    rescale
        Whether times are stretched so that the operations per ms are those of the cluster's
        utilisation; else they stay.

    Raises
    ------
    InputError
        For more clients than the cluster has, a group that it does not have, or a trace without
        duration that is to be stretched.
    """
    instance_of(trace, RequestTrace, "trace", "a RequestTrace")
    flag(exponential, "exponential")
    flag(rescale, "rescale")
    groups = len(cluster.groups)
    if len(trace.clients) > cluster.clients:
        raise InputError(
            "more clients than the cluster has",
            source=trace.source,
            field="client",
            value=len(trace.clients),
            expected=f"at most {cluster.clients}",
        )
    if trace.group is not None and trace.group.max() >= groups:
        raise InputError(
            "no such group",
            source=trace.source,
            field="group",
            value=int(trace.group.max()),
            expected=f"whole numbers from 0 to {groups - 1}",
        )
    time = trace.time
    if rescale:
        if not time[-1] > 0:
            raise InputError(
                "no duration", source=trace.source, field="time", value=float(time[-1]),
                expected="different times",
            )  # fmt: skip
        time = time * (trace.count / cluster.arrivals_per_ms / time[-1])
    share = float(trace.update.mean())
    plain = dataclasses.replace(
        cluster, requests=trace.count, closed=(), largest_record=1, update_share=share
    )
    drawn = draw(plain, seed)
    size = trace.size / trace.size.mean()
    of_key = np.array([zlib.crc32(name.encode()) % groups for name in trace.keys], dtype=np.intp)
    longer = drawn.means
    epochs = 1 + int(time[-1] // cluster.epoch_ms) if len(longer) > 1 else 1
    if epochs > len(longer):  # the trace is longer than the drawn arrivals
        longer = np.tile(longer, (-(-epochs // len(longer)), 1))
    return dataclasses.replace(
        drawn,
        arrival=time,
        client=trace.client,
        group=of_key[trace.key] if trace.group is None else trace.group,
        work=drawn.work * size if exponential else size,
        shadow_work=drawn.shadow_work * size[:, np.newaxis]
        if exponential
        else np.repeat(size[:, np.newaxis], cluster.replication - 1, axis=1),
        mix=np.where(trace.update, 0.0, np.nextafter(1.0, 0.0)),
        means=longer,
    )
