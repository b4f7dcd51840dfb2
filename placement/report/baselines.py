"""Before and after: latency of clients under the leaders that people choose without a model."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from placement.evaluation.rules_of_thumb import RuleOfThumb, rules_of_thumb
from placement.plan import Plan, evaluate

__all__ = ["Baseline", "baseline_names", "baselines", "distinct_baselines", "latency_shares"]

_CORNERS = 120


@dataclasses.dataclass(frozen=True, slots=True)
class Baseline:
    """A leader that administrators would choose for the same replicas and voters.

    Attributes
    ----------
    choice
        Strategy, leader and mean latency.
    per_client
        Mean latency of each client in ms, in client order.
    """

    choice: RuleOfThumb
    per_client: tuple[float, ...]


def baselines(plan: Plan) -> tuple[Baseline, ...]:
    """Return the baseline rules that name a leader, with their latency of each client."""
    configuration = plan.configuration
    if configuration is None:
        return ()
    index = {name: i for i, name in enumerate(plan.problem.instance.sites)}
    found = []
    for choice in rules_of_thumb(plan.problem, configuration):
        if choice.leader is not None:
            other = dataclasses.replace(configuration, leader=index[choice.leader])
            rows = evaluate(plan.problem, other).per_client
            found.append(Baseline(choice, tuple(row.latency for row in rows)))
    return tuple(found)


def distinct_baselines(plan: Plan, others: Sequence[Baseline]) -> list[Baseline]:
    """Return one naive choice per leader that the plan does not have itself."""
    found: dict[str | None, Baseline] = {}
    for other in others:
        if other.choice.leader != plan.leader:
            found.setdefault(other.choice.leader, other)
    return list(found.values())


def baseline_names(other: Baseline) -> str:
    """Return the rule and its leader, as text."""
    return f"{other.choice.strategy} ({other.choice.leader})"


def latency_shares(
    latency: Sequence[float], weight: Sequence[float]
) -> tuple[tuple[float, float], ...]:
    """Share of the operations that are answered within each latency.

    Parameters
    ----------
    latency
        Mean latency of each client, ms; NaN where it issued nothing.
    weight
        Its operations.

    Returns
    -------
    tuple
        (ms, per cent) from 0 to 100 %, at most some hundred corners of the step function.
    """
    values = np.asarray(latency, dtype=np.float64)
    counts = np.where(np.isfinite(values), np.asarray(weight, dtype=np.float64), 0.0)
    if not counts.sum() > 0:
        return ()
    order = np.argsort(np.where(np.isfinite(values), values, np.inf), kind="stable")
    order = order[counts[order] > 0]
    share = 100 * np.cumsum(counts[order]) / counts.sum()
    keep = np.unique(np.linspace(0, len(order) - 1, min(len(order), _CORNERS)).astype(int))
    corners = [(float(values[order[k]]), float(share[k])) for k in keep]
    return ((0.0, 0.0), *corners)
