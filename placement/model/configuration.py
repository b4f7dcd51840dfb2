"""A configuration on site indices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import index

from placement.support.checks import LARGEST_WHOLE, elements, whole


@dataclass(frozen=True, slots=True)
class Configuration:
    """A configuration on site indices: ℓ ∈ V ∩ R, other voters may be witnesses.

    Attributes
    ----------
    leader
        ℓ.
    voters
        V; in the order in which they answer the leader where a method cares.
    replicas
        R, ascending.

    Raises
    ------
    InputError
        For a site that is no whole number >= 0.
    """

    leader: int
    voters: tuple[int, ...]
    replicas: tuple[int, ...]

    def __post_init__(self) -> None:
        if type(self.voters) is tuple and type(self.replicas) is tuple:
            for site in (self.leader, *self.voters, *self.replicas):
                if type(site) is not int or not 0 <= site <= LARGEST_WHOLE:
                    break
            else:
                return  # the usual case is quick
        object.__setattr__(self, "leader", whole(self.leader, "leader"))
        for field in ("voters", "replicas"):
            sites = elements(getattr(self, field), field, "site indices")
            object.__setattr__(self, field, tuple(whole(site, field) for site in sites))

    @property
    def witnesses(self) -> tuple[int, ...]:
        """Voters outside R, which hold no replica, in the order of V."""
        held = self.replicas
        return tuple(site for site in self.voters if site not in held)

    def to_document(self) -> dict[str, object]:
        """Return the roles as a certificate names them: site indices by role, as lists."""
        return {"leader": self.leader, "voters": list(self.voters), "replicas": list(self.replicas)}

    @classmethod
    def of(cls, leader: int, voters: Sequence[int], replicas: Sequence[int]) -> Configuration:
        """Build one from any sequences of integers; replicas are put in site order."""
        if any(isinstance(sites, bytes) for sites in (voters, replicas)):
            return cls(leader, voters, replicas)  # type: ignore[arg-type]  # it raises
        try:
            return cls(
                index(leader), tuple(map(index, voters)), tuple(sorted(map(index, replicas)))
            )
        except TypeError:  # checked again, to name the field
            found = cls(leader, voters, replicas)  # type: ignore[arg-type]  # it converts or raises
            return cls(found.leader, found.voters, tuple(sorted(found.replicas)))
