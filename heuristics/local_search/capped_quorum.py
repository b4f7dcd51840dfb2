"""The quorum wait after every swap when the voters obey one cap on failure domains, in closed form.

Under a cap of c voters per domain the best voters of a leader are the c closest replicas of each
domain, closest first, up to the number of voters (Sharov et al., PVLDB 8(12), 2015, section 4,
"Failure diversity"). Call the c closest of every domain of R *admitted*. The wait is the m-th
smallest RTT among them. If R has lost one replica and its admitted RTTs have lo and hi as the
(m−1)-th and the m-th smallest, an added site at RTT x makes the wait

    hi                          if c admitted ones of its domain are closer than hi
    min(max(x, lo), hi)         otherwise

In the first case the added site can only replace a site that counts already. In the second case it
is one more below hi, or it replaces a site that is no closer than hi, or it is itself no closer
than hi. There are voters enough when at least v replicas are admitted.
"""

from __future__ import annotations

import numpy as np

from placement.support.checks import FloatArray, IntArray

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
        Shape (B, W, sites + 1), as that of
        :meth:`heuristics.local_search.swap_neighbourhood.SwapNeighbourhood.moves`.

    Notes
    -----
    O(B·W·(W + S)) and a product of B·W²·S.
    """
    count, width = replicas.shape
    domain = np.append(labels, -1)
    pair, places = np.arange(count)[:, np.newaxis], np.arange(width)
    held = waits[pair, replicas]
    turn = np.argsort(held, axis=1, kind="stable")
    rtt, sites = held[pair, turn], replicas[pair, turn]
    label = domain[sites]
    later = (label[:, :, np.newaxis] == label[:, np.newaxis, :]) & (places > places[:, np.newaxis])
    place = later.sum(axis=1)[:, np.newaxis, :] - later  # in the domain, once a replica is gone
    stays = places != places[:, np.newaxis]
    admitted = (place < cap) & np.isfinite(rtt)[:, np.newaxis, :] & stays  # [pair, gone, other]
    reached = np.cumsum(admitted, axis=2)
    ends = np.hstack([rtt, np.full((count, 1), np.inf)])
    high = ends[pair, (reached < quorum).sum(axis=2)]
    low = ends[pair, (reached < quorum - 1).sum(axis=2)] if quorum > 1 else np.zeros_like(high)
    at_home = (domain[:, np.newaxis] == domain).astype(np.float64)[sites]  # (B, W, sites + 1)
    counting = admitted & (rtt[:, np.newaxis, :] < high[:, :, np.newaxis])
    driven_out = counting.astype(np.float64) @ at_home >= cap
    table = np.maximum(waits[:, np.newaxis, :], low[:, :, np.newaxis])
    np.copyto(table, np.inf, where=driven_out)
    np.minimum(table, high[:, :, np.newaxis], out=table)
    enough = reached[:, :, -1]
    # the last entry cannot vote, or is no site at all: without it R votes as it is
    now = np.where(enough[:, -1] >= voters, high[:, -1], np.inf)
    if (enough < voters).any():
        full = admitted.astype(np.float64) @ at_home >= cap
        one_more = ~full & np.isfinite(waits)[:, np.newaxis, :]
        np.copyto(table, np.inf, where=enough[:, :, np.newaxis] + one_more < voters)
    by_place = np.empty_like(turn)
    by_place[pair, turn] = places
    return now, table[pair, by_place]
