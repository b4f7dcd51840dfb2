"""Measures: numbers of a plan that a question minimises, or keeps limits on.

A :class:`Measure` says which number: its kind, the operations and clients that count, and whether
it is taken after losses. It knows no instance; :func:`placement.measures.values.value` gives its
value of a configuration.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from placement.errors import InputError
from placement.support.checks import LARGEST, elements, flag, instance_of, number, text, whole


class MeasureKind(StrEnum):
    """Kinds of measures, under the words of their texts."""

    MEAN = "mean"
    PERCENTILE = "percentile"
    WITHIN = "within"
    SLOWEST = "slowest client"
    COST = "cost"
    CHANGES = "changes"
    COPIED = "copied"
    REPLICAS = "replicas"

    @property
    def of_latency(self) -> bool:
        """Return whether the operations of clients make the number."""
        return self in {
            MeasureKind.MEAN,
            MeasureKind.PERCENTILE,
            MeasureKind.WITHIN,
            MeasureKind.SLOWEST,
        }

    @property
    def of_distributions(self) -> bool:
        """Return whether the distributions of RTTs make the number."""
        return self in {MeasureKind.PERCENTILE, MeasureKind.WITHIN}


@dataclass(frozen=True, slots=True)
class After:
    """Loss after which a measure is taken.

    Attributes
    ----------
    level
        Failure-domain level of which any domain is lost: the worst of normal operation and all
        losses counts. "site" for single sites.
    together
        Domains of the level that are lost at once, 1 or 2.
    named
        A site, or LEVEL:DOMAIN, that is lost; the number after this loss counts. Then there is no
        level.
    leader_moves, clients_move
        As in :func:`placement.evaluation.losses.score_after`.
    """

    level: str = ""
    together: int = 1
    named: str = ""
    leader_moves: bool = False
    clients_move: bool = False

    def __post_init__(self) -> None:
        for name in ("level", "named"):
            if getattr(self, name) != "":
                text(getattr(self, name), f"after.{name}")
        whole(self.together, "after.together", minimum=1, maximum=2)
        flag(self.leader_moves, "after.leader_moves")
        flag(self.clients_move, "after.clients_move")
        if bool(self.level) == bool(self.named) or (self.named and self.together > 1):
            raise InputError(
                "a loss is of any domain of a level, or of one named site or domain",
                field="after",
                value=self.named or self.level,
                expected="a level, or a name",
            )


@dataclass(frozen=True, slots=True)
class Measure:
    """A number of a plan.

    Attributes
    ----------
    kind
        Which number.
    level
        p in (0, 1] of a percentile; the deadline in ms of a share that is answered in time.
    operations
        Kinds ("reads", "writes") or names of operations that count; empty: all.
    clients
        Names of clients, or LEVEL:DOMAIN for the clients in it; empty: all.
    after
        The loss after which the number is taken; None: normal operation.
    over_outages
        Whether normal operation and all outages of the question are weighted with their
        probabilities.
    """

    kind: MeasureKind
    level: float | None = None
    operations: tuple[str, ...] = ()
    clients: tuple[str, ...] = ()
    after: After | None = None
    over_outages: bool = False

    def __post_init__(self) -> None:
        kind = MeasureKind(instance_of(self.kind, str, "kind", "a kind of measure"))
        object.__setattr__(self, "kind", kind)
        for name in ("operations", "clients"):
            given = getattr(self, name)
            given = (given,) if isinstance(given, str) else elements(given, name, "names")
            names = tuple(dict.fromkeys(text(one, name) for one in given))
            object.__setattr__(self, name, names)
        if kind is MeasureKind.PERCENTILE:
            level = number(self.level, "percentile", above=True, maximum=1.0)
            object.__setattr__(self, "level", level)
        elif kind is MeasureKind.WITHIN:
            level = number(self.level, "deadline", above=True, maximum=LARGEST)
            object.__setattr__(self, "level", level)
        elif self.level is not None:
            self._refuse("has no level", "level", self.level)
        if not kind.of_latency:
            for name in ("operations", "clients"):
                if getattr(self, name):
                    self._refuse(f"is not about some {name}", name, getattr(self, name))
        if self.after is not None:
            instance_of(self.after, After, "after", "a loss")
        lost = self.after is not None or self.over_outages
        if lost and (not kind.of_latency or kind is MeasureKind.SLOWEST):
            self._refuse("is not taken after a loss", "after", self.after)
        if self.after is not None and self.after.clients_move and kind is not MeasureKind.MEAN:
            self._refuse("is not taken where clients move", "after", self.after)
        if self.over_outages and (self.after is not None or kind is MeasureKind.PERCENTILE):
            self._refuse("is not weighted over outages", "over_outages", True)

    def _refuse(self, why: str, field: str, value: object) -> None:
        raise InputError(f"the measure {self.kind.value!r} {why}", field=field, value=value)

    @property
    def share(self) -> bool:
        """Return whether the number is a share, of which more is better."""
        return self.kind is MeasureKind.WITHIN

    @property
    def unit(self) -> str:
        """Return the unit of the number: "ms", "GB", or nothing."""
        if self.kind is MeasureKind.COPIED:
            return "GB"
        return "ms" if self.kind.of_latency and not self.share else ""

    def __str__(self) -> str:
        from placement.measures.text import measure_text

        return measure_text(self)

    def __le__(self, most: float) -> Limit:
        return Limit(self, most=most)

    def __ge__(self, least: float) -> Limit:
        return Limit(self, least=least)


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit on a measure: at most so much, or, on a share, at least so much.

    Attributes
    ----------
    measure
        What is limited.
    most, least
        One of them: the largest value that is allowed, or the smallest share.
    """

    measure: Measure
    most: float | None = None
    least: float | None = None

    def __post_init__(self) -> None:
        instance_of(self.measure, Measure, "measure", "a placement.measures.Measure")
        share = self.measure.share
        given = self.least if share else self.most
        other = self.most if share else self.least
        name = "least" if share else "most"
        if other is not None or given is None:
            raise InputError(
                f"a limit on {self.measure} is {'a least share' if share else 'a largest value'}",
                field=str(self.measure),
                value=other,
                expected=">= and a share" if share else "<= and a number",
            )
        value = number(given, f"limit on {self.measure}", maximum=1.0 if share else 1e300)
        object.__setattr__(self, name, value)

    @property
    def bound(self) -> float:
        """Return the number of the limit."""
        found = self.least if self.most is None else self.most
        assert found is not None
        return found

    @property
    def allowed(self) -> float:
        """Return the number that a value is compared with: the limit and its rounding error."""
        error = 1e-9 * (1 + abs(self.bound))
        return self.bound + error if self.least is None else self.bound - error

    def kept(self, value: float) -> bool:
        """Return whether a value of the measure keeps the limit, rounding allowed."""
        return value <= self.allowed if self.least is None else value >= self.allowed

    def slack(self, value: float) -> float:
        """Return by how much a value keeps the limit; negative where it breaks it."""
        return self.bound - value if self.least is None else value - self.bound

    def __str__(self) -> str:
        from placement.measures.text import limit_text

        return limit_text(self)
