"""The quorum wait after every swap when the voters obey one cap on failure domains, in closed form.

Under a cap of c voters per domain the best voters of a leader are the c closest replicas of each
domain, as many of them as are asked for, closest first (Sharov et al., PVLDB 8(12), 2015, section
4, "Failure diversity"). Call the c closest of every domain of R *admitted*; the wait is the m-th
smallest RTT among them. When R has lost one replica and its admitted RTTs have lo and hi as the
(m−1)-th and the m-th smallest, a newcomer at RTT x makes the wait

    hi                          if c admitted ones of its domain are closer than hi
    min(max(x, lo), hi)         otherwise

In the first case the newcomer can only take the place of one that counts already. In the second it
is one more below hi, or it drives out one that is no closer than hi, or it is itself no closer than
hi. There are voters enough when at least v replicas are admitted.
"""

from __future__ import annotations

import numpy as np

from placement.checks import FloatArray, IntArray

__all__ = ["capped_waits"]


def capped_waits(
    waits: FloatArray, replicas: IntArray, labels: IntArray, cap: int, quorum: int, voters: int
) -> tuple[FloatArray, FloatArray]:
    """Wait for a quorum now and after every move, of B pairs.

    Parameters
    ----------
    waits
        RTT from each pair's leader in ms, infinite for sites that may not vote, shape
        (B, sites + 1); the last site stands for "none" and is infinite.
    replicas
        Sites of each set in any order, shape (B, W), with at least one "none".
    labels
        Domain of each site, shape (sites,).
    cap
        Most voters in one domain.
    quorum, voters
        m and v.

    Returns
    -------
    now
        Shape (B,), ms; infinite where no voters obey the cap.
    table
        Shape (B, W, sites + 1), as that of :meth:`heuristics.swaps.Neighbourhood.moves`.

    Notes
    -----
    O(B·W·(W + S)) and a product of B·W²·S.
    """
    count, width = replicas.shape
    domain = np.append(labels, -1)
    held = np.take_along_axis(waits, replicas, axis=1)
    turn = np.argsort(held, axis=1, kind="stable")
    rtt = np.take_along_axis(held, turn, axis=1)
    label = domain[np.take_along_axis(replicas, turn, axis=1)]
    behind = np.tri(width, k=-1, dtype=bool).T  # [out, other]: `other` comes later
    later = (label[:, :, np.newaxis] == label[:, np.newaxis, :]) & behind
    place = later.sum(axis=1)[:, np.newaxis, :] - later  # in the domain, once `out` is gone
    admitted = (place < cap) & np.isfinite(rtt)[:, np.newaxis, :]
    admitted &= ~np.eye(width, dtype=bool)
    reached = np.cumsum(admitted, axis=2)
    ends = np.hstack([rtt, np.full((count, 1), np.inf)])
    high = np.take_along_axis(ends, (reached < quorum).sum(axis=2), axis=1)
    low = np.zeros_like(high)
    if quorum > 1:
        low = np.take_along_axis(ends, (reached < quorum - 1).sum(axis=2), axis=1)
    at_home = (label[:, :, np.newaxis] == domain).astype(np.float64)  # (B, W, sites + 1)
    counting = admitted & (rtt[:, np.newaxis, :] < high[:, :, np.newaxis])
    driven_out = counting.astype(np.float64) @ at_home >= cap
    table = np.maximum(waits[:, np.newaxis, :], low[:, :, np.newaxis])
    np.copyto(table, np.inf, where=driven_out)
    np.minimum(table, high[:, :, np.newaxis], out=table)
    enough = reached[:, :, -1]
    # what comes last in order cannot vote, or is no site at all: without it R votes as it is
    now = np.where(enough[:, -1] >= voters, high[:, -1], np.inf)
    if (enough < voters).any():
        full = admitted.astype(np.float64) @ at_home >= cap
        one_more = ~full & np.isfinite(waits)[:, np.newaxis, :]
        np.copyto(table, np.inf, where=enough[:, :, np.newaxis] + one_more < voters)
    by_place = np.empty_like(turn)
    np.put_along_axis(by_place, turn, np.arange(width)[np.newaxis], axis=1)
    return now, table[np.arange(count)[:, np.newaxis], by_place]
