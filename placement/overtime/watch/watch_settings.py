"""Settings of a watch, and the fingerprint by which a state file recognises them."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from placement.errors import InputError, UnitsWarning
from placement.evaluation.waits.wait_checks import refuse_waits
from placement.io.problem_document import problem_document
from placement.model.configuration import Configuration
from placement.model.instance import Instance
from placement.overtime.decayed_counts import Decay
from placement.overtime.moves.hysteresis import Hysteresis
from placement.overtime.moves.move_prices import MovePrices
from placement.problem import Problem
from placement.support.checks import FloatArray, whole

__all__ = ["WatchSettings"]


@dataclass(frozen=True, eq=False)
class WatchSettings:
    """The question, and how much a move must promise.

    Parameters
    ----------
    problem
        Constraints, objective, and the instance with its sites, RTTs and operations; demand arrives
        later. The demand of the instance and the decay of the problem do not count.
    decay
        How fast past intervals are forgotten in the prediction.
    rule
        Horizon and confirmation.
    prices
        Of moves, in ms: see :class:`placement.overtime.moves.MovePrices`.
    method
        That finds configurations, with its settings; deterministic, so that a restart changes
        nothing.
    start
        The configuration that runs now; None: the best for the first interval is where to begin.
    grace
        Intervals that must have arrived after one before it is taken, so that what arrives in the
        wrong order is put right.

    Raises
    ------
    InputError
        For an instance whose RTTs vary by interval, a weight of money in the objective, a grace
        that is no whole number >= 0.
    UnsupportedError
        For operations with waits, and for witnesses.
    """

    problem: Problem
    decay: Decay
    rule: Hysteresis
    prices: MovePrices
    method: str = "exact"
    method_settings: Mapping[str, object] = field(default_factory=dict)
    start: Configuration | None = None
    grace: int = 0

    def __post_init__(self) -> None:
        problem = self.problem
        refuse_waits(problem, "a watch")
        if problem.instance.varying_rtt:
            raise InputError(
                "RTTs that vary by interval",
                field="instance",
                value=problem.instance.name,
                expected="one RTT matrix",
            )
        if problem.rules.cost_weight:
            raise InputError(
                "a watch supports the prices of moves, not the cost of replicas",
                field="cost_weight",
                value=problem.rules.cost_weight,
                expected="no weight of the cost (a budget is allowed: it is a constraint)",
            )
        object.__setattr__(self, "grace", whole(self.grace, "grace"))

    @property
    def instance(self) -> Instance:
        """The instance of the problem."""
        return self.problem.instance

    def document(self) -> dict[str, object]:
        """Return all that can change a recommendation, as JSON values by name."""
        problem = problem_document(self.problem.replace(decay=1.0))
        names = self.instance.sites
        start = self.start
        return {
            "instance": _fingerprint(self.instance),
            "problem": problem,
            "decay": _json(self.decay.factor),
            "horizon": _json(self.rule.horizon),
            "confirm": self.rule.confirm,
            "prices": {f.name: _json(getattr(self.prices, f.name)) for f in _fields(self.prices)},
            "method": self.method,
            "method_settings": {k: str(v) for k, v in sorted(self.method_settings.items())},
            "start": None
            if start is None
            else {
                "leader": names[start.leader],
                "voters": sorted(names[v] for v in start.voters),
                "replicas": [names[r] for r in start.replicas],
            },
            "grace": self.grace,
        }

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of :meth:`document`."""
        text = json.dumps(self.document(), sort_keys=True)
        return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()

    def question(self, rates: FloatArray) -> Problem:
        """Return the problem for predicted operations per interval, (clients, operations)."""
        with warnings.catch_warnings():
            # said once, when the instance was made; not again after every interval
            warnings.simplefilter("ignore", UnitsWarning)
            instance = self.instance.replace(counts=rates, intervals=())
        return self.problem.replace(instance=instance, decay=1.0)


def _fields(value: MovePrices) -> tuple[dataclasses.Field[object], ...]:
    return dataclasses.fields(value)


def _json(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


def _fingerprint(instance: Instance) -> str:
    """Fingerprint of an instance without its demand."""
    shape = (1, *instance.counts.shape[1:])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnitsWarning)
        return instance.replace(counts=np.zeros(shape), intervals=()).fingerprint
