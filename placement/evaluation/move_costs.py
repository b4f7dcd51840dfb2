"""Limits of a problem and added terms of its objective, each a linear function of the placement.

A budget, a limit on the number of changes to the present configuration and a limit on the GB that
are copied are the same thing: a function of the form of
:class:`~placement.evaluation.cost_model.LinearCost` that may be so much at most. With ℓ0, V0 and R0
the present configuration, the price of a move under a leader ℓ is

    K_ℓ = leader[ℓ]·[ℓ ≠ ℓ0] + Σ_{R0} remove + Σ_{V0} demote
    a_r = add_r outside R0, −remove_r in it        b_r = promote_r outside V0, −demote_r in it

The GB copied are the same sum with the size of a replica as the price of every addition. The number
of changes counts a site that is added or removed once, whether it votes or not:

    K_ℓ = [ℓ ≠ ℓ0] + |R0|      a_r = 1 outside R0, 0 in V0, −1 elsewhere
                               b_r = −1 in V0, 1 in the other sites of R0, 0 elsewhere
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from placement.errors import InputError
from placement.evaluation.cost_model import CostModel, LinearCost
from placement.evaluation.moves import Moves, changes
from placement.model.configuration import Configuration
from placement.model.instance import Instance
from placement.support.checks import FloatArray

_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class LinearLimit:
    """A linear function of the placement that may be so much at most."""

    name: str  #: "budget", "changes" or "copied GB"
    most: float  #: the limit
    #: gives the function under a leader: the model of the cost, or one of the moves
    function: CostModel | MoveFunction

    def linear(self, leader: int) -> LinearCost:
        """Return the function under a leader."""
        return self.function.linear(leader)

    def value(self, configuration: Configuration) -> float:
        """Return the function of a configuration."""
        return self.function.value(configuration)

    @property
    def noun(self) -> str:
        """Return the name after its number: "1 change", "2 changes"."""
        return self.name.removesuffix("s") if self.most == 1 else self.name

    @property
    def allowed(self) -> float:
        """Largest value that is taken: the limit and the rounding error of sums of prices."""
        return self.most + _TOLERANCE * (1 + abs(self.most))

    def broken(self, configuration: Configuration) -> str | None:
        """Return the limits that a configuration exceeds, in words, or None."""
        value = self.value(configuration)
        if value <= self.allowed:
            return None
        if self.name == "budget":
            return f"the cost {value:g} is above the budget {self.most:g}"
        return f"{value:g} {self.name} are above the limit of {self.most:g}"


@dataclass(frozen=True, eq=False)
class MoveFunction:
    """Sum over the changes, as a linear function of the placement."""

    present: Configuration  #: (ℓ0, V0, R0)
    constant: float  #: what of K does not depend on the leader
    leader: FloatArray  #: price of each leader that is not ℓ0, shape (sites,)
    #: `replica`, `voter`: a and b, shape (sites,), of either sign
    replica: FloatArray
    voter: FloatArray | None

    def linear(self, leader: int) -> LinearCost:
        """Return the function under a leader."""
        handed = float(self.leader[leader]) if leader != self.present.leader else 0.0
        return LinearCost(self.constant + handed, self.replica, self.voter, None)

    def value(self, configuration: Configuration) -> float:
        """Return the value of a configuration, as the sum over its changes."""
        now = changes(self.present, configuration)
        votes = np.zeros(len(self.leader)) if self.voter is None else self.voter
        # a removal has the negative price of keeping the replica
        total = float(self.leader[configuration.leader]) if now.leader else 0.0
        total += float(self.replica[list(now.added)].sum() - self.replica[list(now.removed)].sum())
        return total + float(votes[list(now.promoted)].sum() - votes[list(now.demoted)].sum())


@dataclass(frozen=True, eq=False)
class MoveCosts:
    """Prices and limits of moves on the sites of an instance."""

    #: `instance`, `present`, `moves`: what it is about
    instance: Instance
    present: Configuration
    moves: Moves
    price: MoveFunction = field(init=False)  #: price of a move in ms, spread over the horizon
    #: those on the number of changes and on the GB copied, as far as they are given
    limits: tuple[LinearLimit, ...] = field(init=False)

    def __post_init__(self) -> None:
        sites, moves = self.instance.sites, self.moves
        add, remove, promote, demote, leader = (
            moves.by_site(name, sites) / moves.horizon
            for name in ("add", "remove", "promote", "demote", "leader")
        )
        object.__setattr__(self, "price", self._function(add, remove, promote, demote, leader))
        limits = []
        if moves.at_most is not None:
            limits.append(LinearLimit("changes", float(moves.at_most), self._count()))
        if moves.copy_gb is not None:
            free = np.zeros(len(sites))
            copied = np.full(len(sites), self._stored_gb())
            function = self._function(copied, free, free, free, free)
            limits.append(LinearLimit("copied GB", moves.copy_gb, function))
        object.__setattr__(self, "limits", tuple(limits))

    def _stored_gb(self) -> float:
        given, prices = self.moves.stored_gb, self.instance.prices
        if given is None and prices is not None and prices.stored_gb:
            given = prices.stored_gb
        if given is None:
            raise InputError(
                "a limit on the GB copied, but the GB of a replica are not known",
                field="moves.copy_gb",
                value=self.moves.copy_gb,
                expected="Moves(stored_gb=…), or prices with stored_gb",
            )
        return given

    def _function(
        self,
        add: FloatArray,
        remove: FloatArray,
        promote: FloatArray,
        demote: FloatArray,
        leader: FloatArray,
    ) -> MoveFunction:
        held, votes = list(self.present.replicas), list(self.present.voters)
        replica, voter = add.copy(), promote.copy()
        replica[held], voter[votes] = -remove[held], -demote[votes]
        constant = float(remove[held].sum() + demote[votes].sum())
        return MoveFunction(self.present, constant, leader, replica, voter if voter.any() else None)

    def _count(self) -> MoveFunction:
        present, sites = self.present, len(self.instance.sites)
        replica, voter = np.ones(sites), np.zeros(sites)
        replica[list(present.replicas)] = -1.0
        replica[list(present.voters)] = 0.0
        voter[list(present.replicas)] = 1.0
        voter[list(present.voters)] = -1.0
        leader = np.ones(sites)
        return MoveFunction(present, float(len(present.replicas)), leader, replica, voter)
