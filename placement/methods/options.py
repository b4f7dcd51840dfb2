"""Options of a method, its settings and its progress reports.

:mod:`placement.methods` says how methods are found and called.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from placement.errors import InputError
from placement.model.configuration import Configuration
from placement.support.checks import function, instance_of, mapping, number, whole


@dataclass(frozen=True, slots=True)
class Progress:
    """A report from a running method.

    Attributes
    ----------
    seconds
        Since the method started.
    incumbent
        Objective of the best configuration so far; +∞ while there is none.
    bound
        Proven lower bound so far; −∞ while there is none.
    done, total
        Units of work, when the method can count them.
    """

    seconds: float
    incumbent: float = math.inf
    bound: float = -math.inf
    done: int | None = None
    total: int | None = None


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a method beside the problem.

    Attributes
    ----------
    time_limit
        Seconds of wall time after which the best plan so far is returned; None: no limit.
    gap_limit
        Relative gap at which a search may stop; 0 asks for a proof.
    seed
        Of everything random.
    threads
        Most threads to use.
    start
        A configuration to start from. :func:`run` repairs one that breaks a constraint, or leaves
        it out, so that a method gets a feasible one or none.
    warm_start
        What the plan of a similar problem by the same method left to be reused, if anything; any
        method may ignore it, and none may trust it.
    progress
        Called now and then from the thread of the caller; must be quick.
    settings
        Of the one method, by name; checked against what the method declares.
    """

    time_limit: float | None = None
    gap_limit: float = 0.0
    seed: int = 0
    threads: int = 1
    start: Configuration | None = None
    warm_start: object | None = None
    progress: Callable[[Progress], None] | None = None
    settings: Mapping[str, object] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.time_limit is not None and not _is_infinite(self.time_limit):
            number(self.time_limit, "time_limit")
        number(self.gap_limit, "gap_limit")
        object.__setattr__(self, "seed", whole(self.seed, "seed"))
        object.__setattr__(self, "threads", whole(self.threads, "threads", minimum=1))
        if self.start is not None:
            instance_of(self.start, Configuration, "start", "a Configuration")
        if self.progress is not None:
            function(self.progress, "progress")
        settings = mapping(self.settings, "settings", "a mapping from names of settings to values")
        object.__setattr__(self, "settings", MappingProxyType(settings))

    def report(self, progress: Progress) -> None:
        """Pass a report to the listener, if there is one."""
        if self.progress is not None:
            self.progress(progress)


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of a method: its default, its meaning, and the check of a value.

    Attributes
    ----------
    default
        Used when nothing is given; its type is the type of the setting.
    meaning
        One line for `placement show methods`.
    choices
        Allowed values; empty: any of the default's type.
    minimum
        Least value of a number; None: any.
    """

    default: bool | int | float | str
    meaning: str
    choices: tuple[str, ...] = ()
    minimum: float | None = None

    def check(self, name: str, value: object) -> bool | int | float | str:
        """Return `value` as the type of the setting, or raise InputError.

        A string, as a command line gives, is converted.
        """
        if value is self.default:
            return self.default
        kind = type(self.default)
        expected = f"{kind.__name__}: {self.meaning}"
        result: bool | int | float | str
        try:
            if kind is bool:
                if str(value).lower() not in ("true", "false", "1", "0"):
                    raise ValueError(value)
                result = str(value).lower() in ("true", "1")
            elif kind is int:
                result = whole(int(str(value)), name, minimum=None)
            elif kind is float:
                result = float(str(value))
                if math.isinf(result) and not _is_infinite(value) and str(value) != "inf":
                    raise ValueError(value)
            else:
                result = str(value)
        except ValueError:
            raise InputError("bad setting", field=name, value=value, expected=expected) from None
        if self.choices and result not in self.choices:
            raise InputError(
                "bad setting", field=name, value=value, expected="one of " + ", ".join(self.choices)
            )
        if self.minimum is not None and not float(result) >= self.minimum:
            raise InputError(
                "bad setting", field=name, value=value, expected=f">= {self.minimum:g}"
            )
        return result


def all_settings(
    declared: Mapping[str, Setting], given: Mapping[str, object], owner: str
) -> dict[str, bool | int | float | str]:
    """Return every setting of an `owner` with its given value, checked, or its default."""
    settings = {name: setting.default for name, setting in declared.items()}
    for name, value in given.items():
        if name not in declared:
            words = f"{owner} has no such setting"
            expected = "one of " + ", ".join(declared) if declared else "none"
            raise InputError(words, field="settings", value=name, expected=expected)
        settings[name] = declared[name].check(name, value)
    return settings


def _is_infinite(value: object) -> bool:
    return isinstance(value, float) and value == math.inf
