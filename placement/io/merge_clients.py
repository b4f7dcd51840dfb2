"""Clients whose RTTs are alike become one: ``placement import --merge-clients MS``.

The heaviest client of a group stands for it, with the operations of all. Every other client of the
group has RTTs that differ from those of the heaviest by at most MS to every site, in every
interval. If an operation is relayed from the nearest replica to the leader, the clients of a group
also have the same order of sites by RTT, so that they use the same replica in every plan.

Let r_c be the largest difference of client c. An operation of c waits for α d(c, near) + γ d(c, ℓ)
and for parts that do not depend on c. A minimum over replicas changes by no more than r_c when all
its RTTs do, so the latency of the operation changes by at most (α + γ) r_c. The mean latency of
any plan, under this demand, therefore differs by at most

    Σ_c Σ_o n_co (α_o + γ_o) r_c / Σ_c Σ_o n_co  <=  MS · max_o (α_o + γ_o)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from placement.errors import InputError, require
from placement.model.instance import Instance
from placement.support.checks import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class MergedClients:
    """An instance with merged clients."""

    instance: Instance  #: its provenance has the numbers below
    before: int  #: number of clients before
    bound: float  #: most that the mean latency of any plan differs by, ms per operation
    #: for each client of before, the index of the client that stands for it, shape (before,)
    groups: IntArray

    @property
    def note(self) -> str:
        """One sentence with the numbers."""
        return (
            f"{self.before} clients were merged into {len(self.instance.clients)}: the mean "
            f"latency of any plan differs by at most {self.bound:.4g} ms"
        )


def merge_clients(instance: Instance, most: float) -> MergedClients:
    """Merge clients whose RTTs differ by at most `most` ms to every site.

    O(clients · sites · similar clients) time, where those are similar whose RTT to one site is.
    Instances with waits, a protocol or prices, for which the bound says nothing, are refused.
    """
    require(0 <= most < math.inf, "--merge-clients", "out of range", most, "milliseconds >= 0")
    operations = instance.operations
    own = instance.protocol is not None or instance.prices is not None
    if own or any(operation.waits for operation in operations):
        words = "waits, a protocol or prices, for which no bound is known"
        expected = "operations with round trips near, relay, direct and quorum only"
        raise InputError(words, field="--merge-clients", value=most, expected=expected)
    issued = instance.counts.sum(axis=0)
    rtt = np.atleast_3d(instance.client_rtt.T).T  # (intervals or 1, clients, sites)
    flat = np.moveaxis(rtt, 1, 0).reshape(len(instance.clients), -1)
    relay = np.array([operation.relay for operation in operations])
    labels = np.zeros(len(flat), dtype=np.intp)
    if (issued @ relay).any():
        order = np.argsort(rtt, axis=2, kind="stable")
        ranked = np.moveaxis(order, 1, 0).reshape(len(flat), -1)
        labels = np.unique(ranked, axis=0, return_inverse=True)[1].reshape(-1)
    groups = _groups(flat, labels, issued.sum(axis=1), most)
    heads = np.unique(groups)
    radius = np.abs(flat - flat[groups]).max(axis=1)
    trips = np.array([operation.near + operation.direct for operation in operations])
    total = float(issued.sum())
    bound = float((issued @ trips) @ radius) / total if total > 0 else 0.0
    counts = np.zeros((len(instance.intervals), len(heads), len(operations)))
    places_of = np.searchsorted(heads, groups)
    for total_of, counted in zip(counts, instance.counts, strict=True):
        np.add.at(total_of, places_of, counted)
    places = instance.client_coordinates
    merged = instance.replace(
        clients=tuple(instance.clients[head] for head in heads),
        client_rtt=instance.client_rtt[..., heads, :],
        counts=counts,
        client_coordinates=None if places is None else places[heads],
    )
    found = MergedClients(merged, len(flat), bound, places_of)
    if len(heads) < len(flat):
        sentence = f"{found.note} (RTTs within {most:g} ms)."
        found = replace(found, instance=merged.replace(provenance=(*instance.provenance, sentence)))
    return found


def _groups(rtt: FloatArray, labels: IntArray, weight: FloatArray, most: float) -> IntArray:
    """Return the client that stands for each, heaviest first; only clients of one label join.

    Candidates come from a list that is sorted by label and by the RTT that varies most.
    """
    along = rtt[:, int(np.ptp(rtt, axis=0).argmax())]
    order = np.lexsort((along, labels))
    starts = np.searchsorted(labels[order], np.arange(labels.max() + 2))
    sorted_rtt, sorted_along = rtt[order], along[order]
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(len(order))
    head = np.full(len(order), -1, dtype=np.intp)  # by place
    for client in np.argsort(-weight, kind="stable").tolist():
        at = place[client]
        if head[at] >= 0:
            continue
        low, high = starts[labels[client]], starts[labels[client] + 1]
        # a little more than `most`: the difference decides
        near = sorted_along[low:high]
        first = low + int(np.searchsorted(near, along[client] - most * (1 + 1e-9) - 1e-9))
        last = low + int(np.searchsorted(near, along[client] + most * (1 + 1e-9) + 1e-9, "right"))
        alike = np.abs(sorted_rtt[first:last] - rtt[client]).max(axis=1) <= most
        joined = first + np.nonzero(alike & (head[first:last] < 0))[0]
        head[joined] = client
    return np.asarray(head[place])
