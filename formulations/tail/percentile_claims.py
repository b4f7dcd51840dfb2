"""The certificate of a percentile search: the least percentile, and the least mean with it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from formulations.tail.late_certificate import CLAIMED_LESS, FORMAT, LateCertificate

if TYPE_CHECKING:
    from formulations.tail.percentile_search import PercentileProof

__all__ = ["MEAN_SLACK", "percentile_certificate"]

MEAN_SLACK = 5e-10
"""Share of the mean by which another plan of the same percentile must be better."""


def percentile_certificate(search: PercentileProof) -> Callable[[], Mapping[str, object]] | None:
    """Return the function that writes the certificate; None: the search was not recorded."""
    if not search.records.complete or search.bound < search.value:
        return None
    demand, found = search.problem.demand, search.best is not None
    written = LateCertificate(
        configuration=search.best,
        score=search.value,
        bound=search.bound,
        deadline=search.bins - 1,
        clients=np.nonzero((demand.near > 0).reshape(-1) | (demand.relay > 0).reshape(-1))[0],
        recorded=len(search.orders),
        replicas=search.problem.rules.replicas_max,
        late_slack=search.late_slack,
        trees=search.records.trees,
    )
    ties = _claim_of_mean(search, written) if found and search.tie_proven else None
    return dataclasses.replace(written, ties=ties).to_json


def _claim_of_mean(
    search: PercentileProof, written: LateCertificate
) -> Callable[[], Mapping[str, object]] | None:
    """Return the function that writes the claim of the least mean; None: it was not recorded."""
    best, deadline, mean = search.best_mean, search.bins, search.mean
    if best is not None and best.configuration == search.best:
        return (lambda: best.certificate or {}) if best.certified else None
    if not search.tie_records.complete:
        return None
    trees = {**search.records.trees, **search.tie_records.trees}
    slack = (CLAIMED_LESS - MEAN_SLACK) * mean

    def document() -> Mapping[str, object]:
        bound = mean * (1 - CLAIMED_LESS)
        return {"format": FORMAT, "bound": bound, **written.claim(deadline, trees, slack)}

    return document
