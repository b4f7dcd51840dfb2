"""Two engines behind one interface: the compiled kernel where it was built, Python everywhere else.

The kernel (csrc/) holds the event loop and the policies listed in :func:`described`; it computes
what :func:`placement.online.selection.simulate` computes, to the last bit, some twenty times as
fast.
Policies that it does not know run in Python.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from heuristics.online.selection.blind_policies import NearestReplica, RandomChoice, RoundRobin
from heuristics.online.selection.c3 import C3
from heuristics.online.selection.dynamic_snitch import DynamicSnitch
from heuristics.online.selection.least_outstanding import LeastOutstanding
from heuristics.online.selection.oracle_policies import EarliestCompletion, Oracle
from heuristics.online.selection.response_times import LeastResponseTime, TwoChoices
from placement.errors import InputError
from placement.online.selection import (
    Hedged,
    LimiterRules,
    LoadGenerators,
    Policy,
    SelectionRun,
    ServerSamplePath,
    simulate,
)
from placement.online.selection.simulator import check_run
from placement.support.checks import text

__all__ = ["Engine", "compiled_available", "described", "run"]

Engine = Literal["auto", "compiled", "python"]

_Described = tuple[int, int, float, float, float]
_Rules = tuple[float, float, float, float, float, float, float, float, float, float, float, int]


def described(policy: Policy, clients: int) -> _Described | None:
    """Return the kernel's form (number, random ties, b, w, α) of a policy; None without one.

    Subclasses and policies from elsewhere are not known, whatever they look like. A hedged policy
    is described by the policy that chooses its replicas.
    """
    if type(policy) is Hedged:
        policy = policy.policy
    kind = type(policy)
    if kind is C3 and isinstance(policy, C3):
        weight = policy.effective_weight(clients)
        return (4, policy.tie == "random", policy.exponent, weight, policy.smoothing)
    if kind is Oracle and isinstance(policy, Oracle):
        return (1 if policy.in_flight else 0, policy.tie == "random", 0.0, 0.0, 1.0)
    if kind is EarliestCompletion and isinstance(policy, EarliestCompletion):
        return (3 if policy.future else 2, policy.tie == "random", 0.0, 0.0, 1.0)
    if kind is LeastOutstanding and isinstance(policy, LeastOutstanding):
        return (5, policy.tie == "random", 0.0, 0.0, 1.0)
    if kind is RoundRobin:
        return (6, False, 0.0, 0.0, 1.0)
    if kind is RandomChoice:
        return (7, True, 0.0, 0.0, 1.0)
    if kind is TwoChoices and isinstance(policy, TwoChoices):
        return (8, True, policy.exponent, 0.0, C3().smoothing)
    if kind is LeastResponseTime and isinstance(policy, LeastResponseTime):
        return (9, policy.tie == "random", 0.0, 0.0, 1.0)
    if kind is DynamicSnitch:
        return (11, False, 0.0, 0.0, 1.0)
    if kind is NearestReplica and isinstance(policy, NearestReplica):
        return (10, policy.tie == "random", 0.0, 0.0, 1.0)
    return None


def compiled_available() -> bool:
    """Return whether the compiled kernel was built and can be imported."""
    try:
        import heuristics.online.selection._kernel  # noqa: F401 - only whether it imports matters
    except ImportError:
        return False
    return True


def run(sample: ServerSamplePath, policy: Policy, engine: Engine = "auto") -> SelectionRun:
    """Simulate a policy on a sample path, by the fastest engine that knows it.

    Parameters
    ----------
    sample, policy
        As for :func:`placement.online.selection.simulate`.
    engine
        "auto": compiled where possible; "compiled" or "python": that one. Both give the same
        numbers to the last bit.

    Raises
    ------
    InputError
        For another name, or when the kernel is asked for and was not built or does not know the
        policy.
    """
    text(engine, "engine", choices=get_args(Engine))
    check_run(sample, policy)
    known = described(policy, sample.cluster.clients)
    built = compiled_available()
    if engine == "compiled" and (known is None or not built):
        lacking = "was not built" if not built else f"does not know {policy.name}"
        raise InputError(
            f"the compiled kernel {lacking}", field="engine", value=engine, expected="'auto'"
        )
    if engine == "python" or known is None or not built:
        return simulate(sample, policy)
    return _compiled(sample, policy, known)


def _compiled(sample: ServerSamplePath, policy: Policy, known: _Described) -> SelectionRun:
    from heuristics.online.selection import _kernel

    cluster, n = sample.cluster, sample.size
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
    end, tries, refused, events, hedged = _kernel.run(
        (
            n,
            cluster.clients,
            cluster.servers,
            cluster.slots,
            cluster.replication,
            sample.epochs,
            len(cluster.groups),
            len(kinds),
        ),
        (cluster.epoch_ms, cluster.update_work),
        known,
        None if limiter is None else _rules(limiter),
        None if hedge is None else (hedge.initial_ms, *hedge.factors),
        snitch,
        (
            np.ascontiguousarray(sample.arrival),
            np.ascontiguousarray(sample.client, dtype=np.int64),
            np.ascontiguousarray(sample.group, dtype=np.int64),
            np.ascontiguousarray(sample.work),
            np.ascontiguousarray(sample.shadowed),
            np.ascontiguousarray(sample.shadow_work),
            np.ascontiguousarray(sample.shuffle),
            np.ascontiguousarray(sample.means),
            np.ascontiguousarray(sample.mix),
            np.ascontiguousarray(cluster.one_way),
            np.ascontiguousarray(cluster.groups, dtype=np.int64),
            np.array(counts, dtype=np.int64),
            np.array([each.joins_ms for each in kinds]),
            np.array([each.update_share for each in kinds]),
            draws,
            latency,
            server,
            start,
            issued,
            update,
        ),
    )
    return SelectionRun(
        policy.name,
        sample,
        issued,
        latency,
        server.astype(np.intp, copy=False),
        start,
        update.astype(np.bool_),
        end,
        tries,
        refused,
        events,
        hedged,
    )


def _rules(rules: LimiterRules) -> _Rules:
    return (
        rules.window_ms,
        rules.decrease,
        rules.growth,
        rules.step,
        rules.hysteresis,
        rules.floor,
        rules.rate,
        rules.tokens,
        rules.capacity,
        rules.saddle,
        rules.smoothing,
        rules.wake == "absim",
    )
