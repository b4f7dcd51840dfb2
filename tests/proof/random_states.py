"""Random states of a proof: sites inside and free, multipliers, transfers of cost."""

import math

import numpy as np

from placement.proof.costs.multipliers import Betas, CostTransfers


def state_of(rng, sites):
    """Some sites inside, the free ones, and multipliers from harmless to hostile."""
    kind = rng.integers(0, 3, sites)
    inside = set(np.nonzero(kind == 0)[0][:3].tolist())
    free = [s for s in range(sites) if s not in inside and kind[s] < 2]
    return inside, free


def multipliers(rng, claim):
    """Random u of the size of the costs, some of them as large as the grid allows, or negative."""
    near = claim.near * claim.client_rtt[claim.clients].mean(axis=1)
    u = near * rng.uniform(0, 2, len(near))
    total = math.ldexp(claim.rounded.total, -claim.rounded.shift)
    wild = rng.random(len(u)) < 0.2
    u = np.where(wild, rng.choice([-1.0, 1.0, 5e-324], len(u)) * total, u)
    return u * min(1.0, 1.5 * total / max(float(np.abs(u).sum()), 5e-324))


def transfers(rng, claim, sites):
    """Random transfers of whole amounts on the grid, together no more than it takes."""
    clients, grid = len(claim.clients), claim.rounded
    entries = []
    for _ in range(int(rng.integers(0, 6)) if clients else 0):
        giver, site, taker = rng.integers(clients), rng.integers(sites), rng.integers(clients)
        amount = np.ldexp(np.floor(rng.uniform(0, 0.15) * grid.total), -grid.shift)
        entries.append((int(giver), int(site), int(taker), float(amount)))
    return CostTransfers(entries, sites, clients)


def betas(rng, claim, sites):
    """Random β of the size of the costs."""
    count = int(rng.integers(0, 6))
    if not len(claim.clients):
        return Betas()
    scale = float(np.mean(claim.near * claim.client_rtt[claim.clients].mean(axis=1)))
    return Betas(
        (
            int(rng.integers(sites)),
            int(rng.integers(len(claim.clients))),
            float(scale * rng.uniform(0, 1)),
        )
        for _ in range(count)
    )
