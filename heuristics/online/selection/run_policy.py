"""Playing a policy on a sample path, by the compiled event loop (``csrc/selection.c``)."""

from __future__ import annotations

import dataclasses
from dataclasses import astuple
from typing import Any

import numpy as np
import numpy.typing as npt

from heuristics.online.selection.policies import DynamicSnitch, Hedged, Policy
from placement.errors import InputError, UnsupportedError
from placement.online.selection import LoadGenerators, SelectionRun, ServerSamplePath, Window
from placement.support.checks import FloatArray, IntArray, instance_of


def compiled_available() -> bool:
    """Return whether the event loop was built and can be imported."""
    try:
        import heuristics.online.selection._kernel  # noqa: F401 - only whether it imports matters
    except ImportError:
        return False
    return True


def run(
    sample: ServerSamplePath, policy: Policy, *, forced: IntArray | None = None
) -> SelectionRun:
    """Play a policy on a sample path until the last read is answered.

    Parameters
    ----------
    sample
        What happens.
    policy
        Chooses the replicas.
    forced
        Server of each read, −1: the policy's choice, shape (n,); the policy sees all reads. None:
        the policy chooses all. A policy with rate control takes none.

    Raises
    ------
    InputError
        When an argument is of another type, or a forced server is outside the group of its read.
    UnsupportedError
        When the event loop was not compiled.
    """
    instance_of(sample, ServerSamplePath, "sample", "a ServerSamplePath")
    instance_of(policy, Policy, "policy", "a policy of heuristics.online.selection.policies")
    if not compiled_available():
        raise UnsupportedError(
            "the simulator of replica selection is compiled, and was not built here: install a "
            "wheel, or a C compiler before the installation"
        )
    from heuristics.online.selection import _kernel

    cluster, n = sample.cluster, sample.size
    sent = _forced(sample, policy, forced)
    latency, start, issued = np.full(n, np.nan), np.full(n, np.nan), np.full(n, np.nan)
    server, update = np.full(n, -1, dtype=np.int64), np.zeros(n, dtype=np.uint8)
    limiter = policy.limiter
    hedge = policy if isinstance(policy, Hedged) else None
    kinds = cluster.closed or (LoadGenerators(1, cluster.update_share),)
    chooses = policy if hedge is None else hedge.policy
    snitch, draws = None, np.empty(0)
    if isinstance(chooses, DynamicSnitch):
        draws = chooses.priorities(sample, n * cluster.replication)
        snitch = (
            chooses.update_ms, chooses.reset_ms, chooses.decay, chooses.badness, chooses.size,
            len(draws),
        )  # fmt: skip
    counts = [each.count if cluster.closed else 0 for each in kinds]
    inputs = (
        sample.arrival, sample.client, sample.group, sample.work, sample.shadowed,
        sample.shadow_work, sample.shuffle, sample.means, sample.mix, cluster.one_way,
        cluster.groups, np.array(counts), np.array([each.joins_ms for each in kinds]),
        np.array([each.update_share for each in kinds]), draws, sample.uniform, sent,
    )  # fmt: skip
    end, tries, refused, events, hedged = _kernel.run(
        (
            n, cluster.clients, cluster.servers, cluster.slots, cluster.replication, sample.epochs,
            len(cluster.groups), len(kinds),
        ),
        (cluster.epoch_ms, cluster.update_work),
        policy.described(cluster.clients),
        None if limiter is None else (*astuple(limiter)[:-1], limiter.wake == "absim"),
        None if hedge is None else (hedge.initial_ms, *hedge.factors),
        snitch,
        (*map(_bytes, inputs), latency, server, start, issued, update),
    )  # fmt: skip
    return SelectionRun(
        policy.name, sample, issued, latency, server.astype(np.intp, copy=False), start,
        update.astype(np.bool_), end, tries, refused, events, hedged,
    )  # fmt: skip


def _bytes(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return an array as the kernel reads it: whole numbers of more than a byte in 64 bits."""
    wide = array.dtype.kind == "i" and array.dtype.itemsize > 1
    return np.ascontiguousarray(array, dtype=np.int64 if wide else None)


def _forced(sample: ServerSamplePath, policy: Policy, forced: IntArray | None) -> IntArray:
    """Return the forced servers as the kernel reads them."""
    if forced is None:
        return np.full(sample.size, -1, dtype=np.int64)
    sent = np.ascontiguousarray(forced, dtype=np.int64)
    groups = sample.cluster.groups[sample.group]
    inside = (
        sent.shape == (sample.size,)
        and ((sent == -1) | (groups == sent[:, np.newaxis]).any(axis=1)).all()
    )
    if policy.limiter is not None or not inside:
        raise InputError(
            "no servers to force", field="forced", value=sent.shape,
            expected=f"one server of its group, or −1, for each of {sample.size} reads; a policy "
            "without rate control",
        )  # fmt: skip
    return sent


def play(window: Window, policy: Policy) -> FloatArray:
    """Let a policy that has watched the reads before a window decide its reads.

    Returns
    -------
    FloatArray
        Flow times in ms, shape (N,). Its rate control, if it has one, is left aside: a backlog
        would cross the border of the window.
    """
    forced = np.full(window.path.size, -1, dtype=np.int64)
    forced[: window.first] = window.before
    free = dataclasses.replace(policy, limiter=None)
    return run(window.path, free, forced=forced).latency[window.first :]
