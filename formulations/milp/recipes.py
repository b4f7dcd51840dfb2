"""Named formulations: three independent choices of rows, and the combinations that have a name.

All recipes have the same optimum; they differ in the number of rows and columns and in how much the
LP relaxation loses. :mod:`formulations.milp.lp_strength` measures both, and
``python -m benchmarks run milp.strength`` prints the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum


class Nearest(StrEnum):
    """Linearisation of "c is served by its nearest replica".

    z_cr says that r serves c; Σ_r z_cr = 1 and z_cr ≤ x_r always. Without further rows a client
    would be served by the replica that is cheapest for the objective, not by its nearest.
    """

    CHURCH_COHON = "church-cohon"
    """Σ_{s ⪯_c r} z_cs ≥ x_r: an open r is served from within its ball. |C||S| dense rows.

    Church and Cohon 1976; with Σ z = 1 the same as Wagner and Falkson 1975,
    Σ_{s ≻_c r} z_cs + x_r ≤ 1.
    """
    CHAIN = "chain"
    """Church–Cohon on cumulative variables Z_c(r) = Σ_{s ⪯_c r} z_cs: three non-zeros a row.

    Z_c(r) ≥ x_r, and 0 ≤ Z_c(r) − Z_c(r⁻) ≤ x_r with r⁻ the candidate before r. These are the
    radius variables of Cornuéjols, Nemhauser and Wolsey 1980 and Elloumi 2010 (1 − Z: "no replica
    within the radius"); a linear change of variables, hence the LP bound of Church–Cohon with
    O(|C||S|) non-zeros instead of O(|C||S|²).
    """
    ROJESKI_REVELLE = "rojeski-revelle"
    """z_cr ≥ x_r − Σ_{s ≺_c r} x_s: r serves c unless something closer is open.

    Rojeski and ReVelle 1970; weaker than Church–Cohon, since z_cs ≤ x_s.
    """
    PAIRWISE = "pairwise"
    """z_cs + x_r ≤ 1 for every r ≺_c s: a replica closer than s forbids s. |C||S|²/2 rows.

    Dobson and Karmarkar 1987; the sum over s is Wagner–Falkson, so this is weaker still.
    """


class Forwarding(StrEnum):
    """Linearisation of the product "r serves c, and ℓ leads" of d(near, ℓ), without a big M."""

    AGGREGATED = "aggregated"
    """F_rℓ, the share of all forwarded operations that goes from r to ℓ: |S|² variables.

    Σ_ℓ F_rℓ = Σ_c b_c z_cr and Σ_r F_rℓ = y_ℓ, with b_c = B_c/ΣB: a transport problem between the
    serving sites and the leaders. For integer y it has one solution, F_rℓ = y_ℓ Σ_c b_c z_cr.
    """
    PER_CLIENT = "per-client"
    """f_crℓ = z_cr·y_ℓ, client by client: |C||S|² variables.

    Σ_ℓ f_crℓ = z_cr and Σ_r f_crℓ = y_ℓ, and f_crℓ = 0 for r ≻_c ℓ, because a client is never
    served from farther away than its leader. Summing over c (with weights b_c) gives `AGGREGATED`,
    so this one is at least as strong (the first level of Sherali and Adams 1990 on Σ_r z_cr = 1
    and Σ y = 1).
    """


class Quorum(StrEnum):
    """Linearisation of q_ℓ(V), the m-th smallest RTT from the leader to a voter.

    ρ_ℓ1 < ρ_ℓ2 < … are the distinct RTTs from ℓ that can be a quorum wait.
    """

    RADIUS = "radius"
    """t_ℓj: ℓ leads and waits ρ_ℓj.  Σ_j t_ℓj = y_ℓ,  Σ_{r: d(ℓ,r) ≤ ρ_ℓj} v_r ≥ m t_ℓj."""
    NESTED = "nested"
    """T_ℓj: ℓ leads and its quorum answers within ρ_ℓj; the leader's own vote is set aside.

    T_ℓj ≤ y_ℓ,  Σ_{r ≠ ℓ: d(ℓ,r) ≤ ρ_ℓj} v_r ≥ (m − 1) T_ℓj, and the wait is ρ_ℓJ y_ℓ − Σ_{j<J}
    (ρ_ℓ,j+1 − ρ_ℓj) T_ℓj. In terms of `RADIUS` T_ℓj = Σ_{i ≤ j} t_ℓi, so each row here replaces
    one whose right-hand side is smaller, and subtracting y_ℓ ≤ v_ℓ makes it stronger again. For m
    = 2 the T need not be integer: T_ℓj ≤ min(y_ℓ, Σ v) is attained at 0 or 1.
    """
    PER_LEADER = "per-leader"
    """`NESTED` with the votes split by leader, u_ℓr = y_ℓ·v_r.

    Σ_ℓ u_ℓr = v_r,  Σ_r u_ℓr = v y_ℓ,  u_ℓr ≤ y_ℓ,  u_ℓℓ = y_ℓ, and u in place of v in the rows: a
    fractional leader can no longer count the voters of another one.
    """
    MEMBERSHIP = "membership"
    """g_ℓr: the vote of r is one of the m that ℓ waits for.

    Σ_r g_ℓr = m y_ℓ,  g_ℓr ≤ v_r,  g_ℓℓ = y_ℓ, and q ≥ Σ_ℓ d(ℓ,r) g_ℓr for every r: an epigraph,
    the textbook way and the weakest.
    """


@dataclass(frozen=True, slots=True)
class Rows:
    """Recipe: a choice of each part; `leader_rows` adds Σ_{s ⪯_c r} z_cs ≥ Σ_{ℓ ⪯_c r} y_ℓ.

    The added rows are valid because the leader holds a replica: if it lies within c's ball, so does
    c's nearest replica. They are not implied by Church–Cohon, which sees one y_ℓ ≤ x_ℓ at a time.
    """

    nearest: Nearest
    forwarding: Forwarding
    quorum: Quorum
    leader_rows: bool = False


class Recipe(Enum):
    """Named combinations; the values are values of the method's setting ``recipe``."""

    CHAIN = "chain"
    """Everything that is strong and stays small: for programs too large for `PER_CLIENT`."""
    TEXTBOOK = "textbook"
    """The plain model: Church–Cohon rows, aggregated flows, one binary per leader and radius."""
    PER_CLIENT = "per-client"
    """Flows per client, the strongest relaxation and the largest program; small once reduced."""
    PER_LEADER = "per-leader"
    """`CHAIN` with votes split by leader, for quorums of three and more."""
    ROJESKI_REVELLE = "rojeski-revelle"
    """Weak rows for the nearest replica."""
    PAIRWISE = "pairwise"
    """The weakest rows for the nearest replica, and the most of them."""
    MEMBERSHIP = "membership"
    """The quorum by its members and an epigraph."""

    @property
    def rows(self) -> Rows:
        """The three choices behind the name."""
        return _ROWS[self]


_ROWS = {
    Recipe.CHAIN: Rows(Nearest.CHAIN, Forwarding.AGGREGATED, Quorum.NESTED, leader_rows=True),
    Recipe.TEXTBOOK: Rows(Nearest.CHURCH_COHON, Forwarding.AGGREGATED, Quorum.RADIUS),
    Recipe.PER_CLIENT: Rows(Nearest.CHAIN, Forwarding.PER_CLIENT, Quorum.PER_LEADER),
    Recipe.PER_LEADER: Rows(
        Nearest.CHAIN, Forwarding.AGGREGATED, Quorum.PER_LEADER, leader_rows=True
    ),
    Recipe.ROJESKI_REVELLE: Rows(Nearest.ROJESKI_REVELLE, Forwarding.AGGREGATED, Quorum.NESTED),
    Recipe.PAIRWISE: Rows(Nearest.PAIRWISE, Forwarding.AGGREGATED, Quorum.NESTED),
    Recipe.MEMBERSHIP: Rows(Nearest.CHAIN, Forwarding.AGGREGATED, Quorum.MEMBERSHIP),
}
