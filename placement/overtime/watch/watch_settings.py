"""Settings of a watch: the fingerprint by which a state file recognises them, and default prices.

Default prices of moves come from the variability of the instance itself. The mean latency of one
configuration rises and falls with the demand. Let σ be its standard deviation over the intervals of
the instance, under the configuration that is best for all of them together. A gain that is small
against 2σ is within what the demand does by itself. So a change of the leader and a copy to a new
site cost 2σ ms each, and a vote given or taken σ: with a horizon of H intervals, a change has to
bring 2σ/H ms in each of them. Where no operation needs a leader, none is handed over.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from placement.errors import UnitsWarning, require
from placement.evaluation.objective import score_of
from placement.evaluation.waits.wait_checks import refuse_waits
from placement.io.problem_document import problem_document
from placement.methods.options import Options
from placement.methods.registry import load_method, run
from placement.model.configuration import Configuration
from placement.model.instance import Instance
from placement.overtime.decayed_counts import Decay
from placement.overtime.moves.hysteresis import Hysteresis
from placement.overtime.moves.move_prices import MovePrices
from placement.problem import Problem
from placement.support.checks import FloatArray, whole


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
        words = "RTTs that vary by interval"
        expected = "one RTT matrix"
        require(
            not problem.instance.varying_rtt, "instance", words, problem.instance.name, expected
        )
        words = "a watch supports the prices of moves, not the cost of replicas"
        expected = "no weight of the cost (a budget is allowed: it is a constraint)"
        require(
            not problem.rules.cost_weight, "cost_weight", words, problem.rules.cost_weight, expected
        )
        object.__setattr__(self, "grace", whole(self.grace, "grace"))

    @property
    def instance(self) -> Instance:
        """The instance of the problem."""
        return self.problem.instance

    def document(self) -> dict[str, object]:
        """Return all that can change a recommendation, as JSON values by name."""
        problem = problem_document(self.problem.replace(decay=1.0))
        shape = (1, *self.instance.counts.shape[1:])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnitsWarning)
            plain = self.instance.replace(counts=np.zeros(shape), intervals=())
        names = self.instance.sites
        start = self.start
        return {
            "instance": plain.fingerprint,  # without its demand
            "problem": problem,
            "decay": _json(self.decay.factor),
            "horizon": _json(self.rule.horizon),
            "confirm": self.rule.confirm,
            "prices": {k: _json(value) for k, value in dataclasses.asdict(self.prices).items()},
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


def _json(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


# Default prices of moves, from the variability of the instance itself

_DEVIATIONS = 2.0


def default_prices(problem: Problem, method: str = "exact") -> MovePrices:
    """Return prices of moves from the demand of an instance; 0 with fewer than two intervals.

    Parameters
    ----------
    problem
        The question, with the demand of the past: one row of counts for each interval.
    method
        That finds the configuration which is best for all intervals together.

    Notes
    -----
    One search, and the score of each interval. Intervals without operations do not count.
    """
    instance = problem.instance
    counts = instance.counts[instance.counts.sum(axis=(1, 2)) > 0]
    if len(counts) < 2 or instance.varying_rtt:
        return MovePrices()
    together = problem.replace(instance=instance.replace(counts=counts.sum(axis=0), intervals=()))
    best = run(load_method(method), together, Options()).configuration
    if best is None:
        return MovePrices()
    means = []
    for one in counts:
        alone = problem.replace(instance=instance.replace(counts=one, intervals=()), decay=1.0)
        if alone.demand.operations > 0:
            means.append(score_of(alone, best) / alone.demand.operations)
    price = _DEVIATIONS * float(np.std(means)) if means else 0.0
    return MovePrices(leader=price, voter=price / 2, add=price)
