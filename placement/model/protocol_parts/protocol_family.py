"""Form of a commit protocol: parameters, and the path of each kind of operation.

The protocols themselves are rows of :mod:`placement.model.protocol_families`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from placement.errors import InputError
from placement.support.checks import number, text, whole

__all__ = ["Parameter", "Path", "ProtocolFamily", "Values", "share_of_wait"]

Values = Mapping[str, float | str]
"""Parameters by name."""


@dataclass(frozen=True, slots=True)
class Path:
    """Trips (α, β, γ), waits in words, and constant ms of one kind of operation."""

    trips: tuple[float, float, float]
    waits: tuple[str, ...] = ()
    constant: float = 0.0

    def __str__(self) -> str:
        words = ("to the nearest replica", "from there to the leader", "to the leader")
        parts = [
            (f"{count:g} × " if count != 1 else "") + word
            for count, word in zip(self.trips, words, strict=True)
            if count
        ]
        parts += [f"[{wait}]" for wait in self.waits]
        parts += [f"{self.constant:g} ms"] * bool(self.constant)
        return " + ".join(parts) or "0"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter: its default (None: it must be given, or is absent), meaning and range.

    `kind` is "share" (0 to 1), "number" (>= 0), "whole" (>= 1), "level" (a failure-domain level),
    "tuned" (a number >= 0, or "auto") or "holders" ("replicas", "voters" or a whole number >= 1).
    """

    default: float | str | None
    meaning: str
    kind: str = "share"
    required: bool = False

    def read(self, name: str, value: object) -> float | str:
        """Return a checked value; text of a command line is converted."""
        if self.kind == "level" or (self.kind == "holders" and value in ("replicas", "voters")):
            return text(value, name)
        if self.kind == "tuned" and value == "auto":
            return "auto"
        try:
            if isinstance(value, bool):
                raise TypeError(value)
            if isinstance(value, str):
                value = float(value)
            if self.kind in ("whole", "holders"):
                return float(whole(int(value) if value == int(value) else value, name, minimum=1))  # type: ignore[call-overload]  # refused there
            return number(value, name, maximum=1.0 if self.kind == "share" else 1e9)
        except (InputError, ValueError, TypeError, OverflowError):
            ranges = {
                "share": "a number from 0 to 1",
                "whole": "a whole number >= 1",
                "tuned": "a number >= 0, or 'auto'",
                "holders": "'replicas', 'voters' or a whole number >= 1",
            }
            raise InputError(
                "bad parameter of a protocol",
                field=name,
                value=value,
                expected=f"{ranges.get(self.kind, 'a number >= 0')}: {self.meaning}",
            ) from None


@dataclass(frozen=True, slots=True)
class ProtocolFamily:
    """A protocol without its parameters.

    Attributes
    ----------
    name, summary, source
        What it is called, in a line, and where it is described.
    make
        (parameters with defaults, voters) -> path of each kind of operation.
    parameters
        By name.
    assumptions
        Sentences beside those common to all.
    one_group_only
        Whether a transaction over several groups has no path: no leader commits it.
    own_writes
        Whether its strong reads hold only beside its own writes, which wait for those who read.
    fast
        (parameters, voters) -> votes of the fast quorum, and the paths where fewer voters are left:
        the first round ends with a majority, and the slow path follows. None: no fast quorum.
    """

    name: str
    summary: str
    source: str
    make: Callable[[Values, int], Mapping[str, Path]]
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()
    one_group_only: bool = False
    own_writes: bool = False
    fast: Callable[[Values, int], tuple[int, Mapping[str, Path]]] | None = None

    @property
    def all_parameters(self) -> Mapping[str, Parameter]:
        """Return the parameters, with `multi` where transactions over groups have no path."""
        return {**self.parameters, **({"multi": _MULTI} if self.one_group_only else {})}

    def checked(self, given: Values) -> Values:
        """Return the parameters that were given, checked, in the order of the family."""
        known = self.all_parameters
        for key in given:
            if key not in known:
                raise InputError(
                    f"the protocol {self.name} has no such parameter",
                    field="protocol",
                    value=key,
                    expected="one of " + ", ".join(known) if known else "no parameter",
                )
        for key, parameter in known.items():
            if parameter.required and key not in given:
                raise InputError(
                    f"the protocol {self.name} needs a parameter",
                    field="protocol",
                    value=self.name,
                    expected=f"{self.name}:{key}=… ({parameter.meaning})",
                )
        return MappingProxyType(
            {key: known[key].read(key, given[key]) for key in known if key in given}
        )

    def paths(self, given: Values, voters: int) -> Mapping[str, Path]:
        """Return the path of each kind of operation for a number of voters."""
        return self._with_groups(given, self.make(self.values(given), voters))

    def fast_quorum(self, given: Values, voters: int) -> int | None:
        """Return the votes of the fast quorum; None: the protocol has none."""
        return None if self.fast is None else self.fast(self.values(given), voters)[0]

    def slow_paths(self, given: Values, voters: int) -> Mapping[str, Path]:
        """Return the path of each kind of operation where no fast quorum is left."""
        assert self.fast is not None
        return self._with_groups(given, self.fast(self.values(given), voters)[1])

    def values(self, given: Values) -> Values:
        """Return the parameters with their defaults."""
        known = self.all_parameters.items()
        return {**{key: one.default for key, one in known if one.default is not None}, **given}

    def _with_groups(self, given: Values, paths: Mapping[str, Path]) -> Mapping[str, Path]:
        """Return paths with that of transactions over several groups."""
        found = dict(paths)
        if "multi_write" not in found:
            times = float(given.get("multi", 1.0 if self.one_group_only else 2.0))
            found["multi_write"] = _repeated(found["write"], times, whole=self.one_group_only)
        return found

    def warnings(self, given: Values, replicas: int) -> tuple[str, ...]:
        """Return warnings about unusual parameters, as sentences."""
        found = []
        for key in ("slow", "interference"):
            if float(given.get(key, 0.0)) > 0.3:
                found.append(
                    f"{key} = {float(given[key]):g}: so much interference changes more than this "
                    "share; a model of conflicts is not part of this package"
                )
        if self.name == "coordinated" and float(given["r"]) + float(given["w"]) <= replicas:
            found.append(f"r + w <= {replicas} replicas: a read need not see the write before it")
        return tuple(found)


_MULTI = Parameter(
    None, "commits, one after another, of a transaction over several groups", "whole"
)


def _repeated(path: Path, times: float, *, whole: bool) -> Path:
    """Return a path whose waits (`whole`: whose every part) are gone through several times."""
    waits: list[str] = []
    for wait in path.waits:
        before, cross, rest = wait.rpartition(" × ")
        waits.extend(share_of_wait(times * (float(before) if cross else 1.0), rest))
    if not whole:
        return Path(path.trips, tuple(waits), path.constant)
    near, relay, direct = (times * trip for trip in path.trips)
    return Path((near, relay, direct), tuple(waits), times * path.constant)


def share_of_wait(times: float, wait: str) -> tuple[str, ...]:
    """Return a wait for a share of the operations; nothing for none."""
    if times == 0:
        return ()
    return (wait,) if times == 1 else (f"{repr(times).removesuffix('.0')} × {wait}",)
