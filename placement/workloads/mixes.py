"""Operation mixes: the share of each kind of operation in a database.

Nine mixes, over the five standard operations of
:data:`placement.model.operations.STANDARD_OPERATIONS`. The two YCSB rows are workloads A and B of
Cooper et al., "Benchmarking cloud serving systems with YCSB", SoCC 2010 (50/50 and 95/5 reads to
updates), with strong reads and single-group updates; the other mixes are typical of the named kind
of service.
"""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from placement.errors import InputError
from placement.support.checks import FloatArray, instance_of, number

__all__ = ["CONCENTRATION", "MIXES", "mix_shares", "sample_mix"]

MIXES = MappingProxyType(
    {
        # weak, bounded, strong reads; single-group, multi-group transactions; per cent
        "cache": (94.0, 5.0, 0.8, 0.2, 0.0),
        "social": (60.0, 25.0, 12.0, 2.7, 0.3),
        "oltp": (0.0, 60.0, 39.7, 0.15, 0.15),
        "sessions": (10.0, 10.0, 45.0, 34.0, 1.0),
        "configuration": (80.0, 10.0, 9.8, 0.2, 0.0),
        "ledger": (0.0, 5.0, 45.0, 35.0, 15.0),
        "logging": (0.0, 2.0, 3.0, 93.0, 2.0),
        "ycsb-a": (0.0, 0.0, 50.0, 50.0, 0.0),
        "ycsb-b": (0.0, 0.0, 95.0, 5.0, 0.0),
    }
)
"""Per cent of weak, bounded and strong reads, single-group and multi-group transactions."""

CONCENTRATION = 100.0
"""Concentration of the Dirichlet law from which databases of one kind draw their own mix."""


def mix_shares(name: str) -> FloatArray:
    """Return the shares of the standard operations in a named mix, shape (5,), summing to 1.

    Raises
    ------
    InputError
        For a name that is not in :data:`MIXES`.
    """
    if not isinstance(name, str) or name not in MIXES:
        raise InputError(
            "unknown operation mix",
            field="mix",
            value=name,
            expected="one of " + ", ".join(MIXES),
        )
    shares = np.array(MIXES[name], dtype=np.float64)
    shares /= shares.sum()
    return shares


def sample_mix(
    name: str, rng: np.random.Generator, concentration: float = CONCENTRATION
) -> FloatArray:
    """Draw one database's own mix from Dirichlet(concentration · mix), shape (5,).

    An operation that the named mix does not have, the drawn one does not have either.
    """
    instance_of(rng, np.random.Generator, "rng", "a numpy.random.Generator")
    number(concentration, "concentration", above=True)
    shares = mix_shares(name)
    present = shares > 0
    drawn = np.zeros_like(shares)
    drawn[present] = rng.dirichlet(concentration * shares[present])
    return drawn
