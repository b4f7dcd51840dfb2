"""Record of one run of one policy: summarised latencies and bounds, as one JSON line."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

import numpy as np
import numpy.typing as npt

from placement.errors import InputError

__all__ = ["Latencies", "RunRecord", "summarise"]


@dataclass(frozen=True, slots=True)
class Latencies:
    """Summary of end-to-end latencies, in ms.

    Attributes
    ----------
    n
        How many requests count.
    mean, p50, p95, p99, p999
        Mean and percentiles, by linear interpolation between order statistics
        (``numpy.percentile(..., method="linear")``); NaN when n = 0.
    """

    n: int
    mean: float
    p50: float
    p95: float
    p99: float
    p999: float


def summarise(latency_ms: npt.ArrayLike) -> Latencies:
    """Summarise latencies in ms; an empty array gives n = 0 and NaN.

    Raises
    ------
    InputError
        When a latency is NaN, infinite or negative, which no simulator may return.

    Examples
    --------
    >>> summarise([1.0, 2.0, 3.0, 4.0]).p50
    2.5
    """
    values = np.asarray(latency_ms, dtype=np.float64).ravel()
    if not values.size:
        return Latencies(0, math.nan, math.nan, math.nan, math.nan, math.nan)
    if not np.isfinite(values).all() or values.min() < 0:
        worst = values[~np.isfinite(values) | (values < 0)][0]
        raise InputError(
            "not a latency",
            field="latency_ms",
            value=float(worst),
            expected="finite milliseconds >= 0",
        )
    p50, p95, p99, p999 = np.percentile(values, [50.0, 95.0, 99.0, 99.9], method="linear")
    return Latencies(
        int(values.size), float(values.mean()), float(p50), float(p95), float(p99), float(p999)
    )


@dataclass(frozen=True, slots=True)
class RunRecord:
    """Run of one policy of one system.

    Attributes
    ----------
    system
        "selection", "reads" or "dynamic".
    policy
        Name of the policy, or of the solver for an exact answer.
    params
        What defines the run besides the seed; JSON-like.
    seed
        Of :func:`placement.online.spawn_streams`.
    latencies
        What clients waited, in ms.
    throughput
        Operations completed per second of simulated time; NaN where there is no clock.
    lower_bound, bound_kind
        A proven lower bound on the mean latency in ms, and what proves it; NaN and "" without one.
    solver_status
        As the solver calls it; "" for a policy.
    wall_s
        Seconds the run took.
    extra
        Counters of the system; JSON-like.
    """

    system: str
    policy: str
    params: Mapping[str, object]
    seed: int
    latencies: Latencies
    throughput: float = math.nan
    lower_bound: float = math.nan
    bound_kind: str = ""
    solver_status: str = ""
    wall_s: float = math.nan
    extra: Mapping[str, object] = field(default_factory=dict)

    def to_json(self) -> str:
        """Return one line of JSON, latencies unfolded; NaN and infinities become null."""
        fields = asdict(self)
        latencies = fields.pop("latencies")
        row = {key: fields.pop(key) for key in ("system", "policy", "params", "seed")}
        return json.dumps(_finite({**row, **latencies, **fields}), ensure_ascii=False)


def _finite(value: object) -> object:
    """Replace values that JSON lacks (NaN, infinities, NumPy scalars) by JSON values."""
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, np.generic):
        return _finite(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
