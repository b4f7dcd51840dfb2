"""Share of the reads that the leaseholder serves, in closed form and exact fractions.

Notation: n nodes, all of them replicas; one of them, L, holds the lease; m = ⌊n/2⌋, so that a
majority has m + 1 nodes. Every node is the gateway of the same number R of reads. L reads its own
copy. Any other gateway goes to L with probability x, and otherwise asks itself and m nodes drawn
uniformly from the remaining n − 2, L left out. Then

    P = m/(n − 2)                              a node is in the quorum of another gateway
    load of L              R·[1 + x·(n − 1)]
    load of any other      R·(1 − x)·[1 + (n − 2)·P] = R·(1 − x)·(1 + m)
    equal                  x = m/(n + m)

Source: V. Arora, T. Mittal, D. Agrawal, A. El Abbadi, X. Xue, Zhiyanan, Zhu Jianfeng, "Leader or
majority: why have one when you can have both?", HotCloud 2017; :func:`slide_share` is the formula
as the slides print it. The loads and the case with writes are derived from the protocol.
"""

from __future__ import annotations

from fractions import Fraction
from math import comb

from placement.errors import InputError, require


def majority(nodes: int) -> int:
    """Return m + 1 = ⌊n/2⌋ + 1, the smallest majority of n >= 3 nodes.

    Below three nodes there is no majority without the leaseholder to read from (InputError).
    """
    if isinstance(nodes, bool) or not isinstance(nodes, int) or nodes < 3:
        raise InputError(
            "no majority without the leaseholder",
            field="nodes",
            value=nodes,
            expected="a whole number >= 3",
        )
    return nodes // 2 + 1


def inclusion_probability(nodes: int) -> Fraction:
    """P = m/(n − 2): how likely a node is in the quorum of another gateway, neither being L."""
    return Fraction(majority(nodes) - 1, nodes - 2)


def slide_share(nodes: int) -> Fraction:
    """X = P(n − 2)/(n + P(n − 2)) with P as on the slides, by binomial coefficients.

    The slides treat n = 3 apart, which :func:`inclusion_probability` shows to be unnecessary.
    """
    m = majority(nodes) - 1
    p = Fraction(1) if nodes == 3 else Fraction(comb(nodes - 3, m - 1), comb(nodes - 2, m))
    return p * (nodes - 2) / (nodes + p * (nodes - 2))


def uniform_share(
    nodes: int,
    writes_per_read: Fraction | float = 0,
    extra_cost: Fraction | float = 0,
) -> Fraction:
    """X at which all nodes carry the same load; the nearest x in [0, 1] if none does.

    With W >= 0 writes per read, costing c_L at L and c_F at every other node (a read costs 1;
    `extra_cost` is c_L − c_F, of either sign), L carries n·R·W·(c_L − c_F) more than the others
    besides its reads, so that

        x = [m − n·W·(c_L − c_F)]/(n + m),  clipped to [0, 1].

    The load of L grows with x and that of the others falls, so this x also minimises the largest
    load among all x. Exact for exact arguments; a float counts as the binary fraction it is.
    """
    m = majority(nodes) - 1
    writes = _fraction(writes_per_read, "writes_per_read")
    require(writes >= 0, "writes_per_read", "out of range", writes_per_read, ">= 0")
    share = (m - nodes * writes * _fraction(extra_cost, "extra_cost")) / (nodes + m)
    return min(max(share, Fraction(0)), Fraction(1))


def leader_load(nodes: int, share: Fraction | float) -> Fraction:
    """Reads that L serves, in units of R: 1 + x(n − 1)."""
    majority(nodes)
    return 1 + _share(share) * (nodes - 1)


def follower_load(nodes: int, share: Fraction | float) -> Fraction:
    """Reads that any other node serves, in units of R: (1 − x)(1 + m)."""
    return (1 - _share(share)) * majority(nodes)


def leader_served(nodes: int, share: Fraction | float) -> Fraction:
    """Part of *all* reads that L serves; x itself counts only reads of the other gateways."""
    return leader_load(nodes, share) / nodes


def peak_reduction(nodes: int, share: Fraction | float) -> Fraction:
    """Return n·R (the load of L when it serves all reads) over the largest load.

    At the uniform share it is (n + m)/(1 + m), below 3 for every n.
    """
    return nodes / max(leader_load(nodes, share), follower_load(nodes, share))


def _share(value: Fraction | float) -> Fraction:
    share = _fraction(value, "share")
    if not 0 <= share <= 1:
        raise InputError("not a share", field="share", value=value, expected="0 to 1")
    return share


def _fraction(value: Fraction | float, field: str) -> Fraction:
    try:
        return Fraction(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(
            "not a number", field=field, value=value, expected="a finite number"
        ) from None
