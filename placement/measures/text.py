"""Texts of measures and limits, and the functions that build them in Python.

    mean(reads, clients in continent:EU)      p99.9(writes)      within 100 ms      slowest client
    mean after the loss of any region         p99(client frankfurt) after the loss of any two sites
    mean over outages                         cost    changes    copied GB    replicas
    p99(writes) <= 150 ms                     within 100 ms >= 95 %                cost <= 4,000

A name with other characters than letters, digits and ``. _ - : /``, or one that is a word of the
language, stands in double quotes, with a backslash before a quote or a backslash. Every measure and
limit prints the text that reads as it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from placement.errors import InputError
from placement.measures.measure import After, Limit, Measure, MeasureKind
from placement.support.checks import suggest, text

_NAME = re.compile(r"[\w./:-]+")
_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|<=|>=|[(),%]|[^\s"(),%<>=]+|.)', re.S)
_NUMBER = re.compile(r"(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?(?:[eE][+-]?\d+)?")
_LIMIT = re.compile(
    r'(?P<measure>(?:[^"<>=≤≥]|"(?:[^"\\]|\\.)*")*)(?P<sign><=|>=|≤|≥)(?P<rest>.*)', re.S
)
_PERCENTILE = re.compile(r"p(\d+(?:\.\d+)?)")
_WORDS = {"reads", "writes", "clients", "client", "in", "any", "two"}
_HEADS = ("mean", "p99", "within", "slowest client", "cost", "changes", "copied GB", "replicas")
_LEADER_MOVES = "the leader may move"
_CLIENTS_MOVE = "clients move"


# --- functions ---------------------------------------------------------------------------------


def mean(
    kind: str | Sequence[str] = (), clients: str | Sequence[str] = (), after: str = ""
) -> Measure:
    """Return the mean latency of some kinds of operations of some clients, after a loss.

    Parameters
    ----------
    kind
        "reads", "writes" or names of operations; empty: all.
    clients
        Names, or LEVEL:DOMAIN; empty: all.
    after
        The loss as in a text: "any region", "any two sites", "eu-west-1"; empty: none.

    Examples
    --------
    >>> print(mean("reads", "continent:EU") <= 40)
    mean(reads, clients in continent:EU) <= 40 ms
    """
    return _built(MeasureKind.MEAN, None, kind, clients, after)


def percentile(
    percent: float,
    kind: str | Sequence[str] = (),
    clients: str | Sequence[str] = (),
    after: str = "",
) -> Measure:
    """Return a percentile of the latency, in (0, 100]; the others as for :func:`mean`."""
    return _built(MeasureKind.PERCENTILE, _share(repr(percent)), kind, clients, after)


def within(
    deadline: float,
    kind: str | Sequence[str] = (),
    clients: str | Sequence[str] = (),
    after: str = "",
) -> Measure:
    """Return the share answered within so many ms; the others as for :func:`mean`."""
    return _built(MeasureKind.WITHIN, deadline, kind, clients, after)


def slowest_client(kind: str | Sequence[str] = (), clients: str | Sequence[str] = ()) -> Measure:
    """Return the mean latency of the client that waits longest; others as for :func:`mean`."""
    return _built(MeasureKind.SLOWEST, None, kind, clients, "")


def _built(
    kind: MeasureKind,
    level: float | None,
    operations: str | Sequence[str],
    clients: str | Sequence[str],
    after: str,
) -> Measure:
    lost = _Reader(text(after, "after")).loss() if after else None
    return Measure(kind, level, operations, clients, lost)  # type: ignore[arg-type]  # it splits


# --- text of an object -------------------------------------------------------------------------


def number_words(value: float) -> str:
    """Return a number with all its digits, thousands with commas."""
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return repr(value)


def measure_text(measure: Measure) -> str:
    """Return the text of a measure, which :func:`read_measure` reads as it."""
    kind = measure.kind
    words = kind.value
    if kind is MeasureKind.PERCENTILE:
        words = f"p{Decimal(repr(measure.level)) * 100:f}"
        words = words.rstrip("0").rstrip(".") if "." in words else words
    elif kind is MeasureKind.WITHIN:
        assert measure.level is not None
        words = f"within {number_words(measure.level)} ms"
    elif kind is MeasureKind.COPIED:
        words = "copied GB"
    parts = [
        *(_quoted(name, ("reads", "writes")) for name in measure.operations),
        *(
            f"clients in {_quoted(name)}" if ":" in name else f"client {_quoted(name)}"
            for name in measure.clients
        ),
    ]
    if parts:
        words += f"({', '.join(parts)})"
    after = measure.after
    if measure.over_outages:
        return f"{words} over outages"
    if after is None:
        return words
    level = "site" if after.level == "site" else after.level
    if after.named:
        words += f" after the loss of {_quoted(after.named)}"
    elif after.together == 1:
        words += f" after the loss of any {_quoted(level)}"
    else:
        several = re.sub("(?<=[^aeiou])y$", "ie", level) + "s"
        plain = _quoted(level) == level == _one_of(several) and not level.endswith("s")
        words += f" after the loss of any two {several if plain else _in_quotes(level)}"
    words += f", {_LEADER_MOVES}" if after.leader_moves else ""
    return words + (f", {_CLIENTS_MOVE}" if after.clients_move else "")


def _one_of(several: str) -> str:
    """Return the level of a plural: site of sites, country of countries."""
    return re.sub("(?<=[^aeiou])ie$", "y", several.removesuffix("s"))


def limit_text(limit: Limit) -> str:
    """Return the text of a limit, which :func:`read_limit` reads as it."""
    if limit.least is not None:
        percent = f"{Decimal(repr(limit.least)) * 100:f}"
        percent = percent.rstrip("0").rstrip(".") if "." in percent else percent
        return f"{limit.measure} >= {percent} %"
    unit = " ms" if limit.measure.unit == "ms" else ""
    return f"{limit.measure} <= {number_words(limit.bound)}{unit}"


def _quoted(name: str, words: Sequence[str] = ()) -> str:
    plain = _NAME.fullmatch(name) and (name in words or name not in _WORDS)
    return name if plain else _in_quotes(name)


def _in_quotes(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


# --- object of a text --------------------------------------------------------------------------


def read_measure(given: str | Measure) -> Measure:
    """Read a measure from its text.

    Raises
    ------
    InputError
        Naming the part that is wrong, with the closest word that there is.
    """
    if isinstance(given, Measure):
        return given
    reader = _Reader(text(given, "measure"))
    found = reader.measure()
    reader.end()
    return found


def read_limit(given: str | Limit) -> Limit:
    """Read a limit from its text: a measure, ``<=`` or ``>=``, and a number with its unit.

    Raises
    ------
    InputError
        Naming the part that is wrong: a unit that is missing or of something else, a sign that the
        measure does not take.
    """
    if isinstance(given, Limit):
        return given
    match = _LIMIT.fullmatch(text(given, "keep"))
    if match is None:
        raise InputError(
            "no limit", field="keep", value=given, expected="'MEASURE <= NUMBER UNIT', or >= SHARE"
        )
    measure = read_measure(match["measure"].strip())
    least = match["sign"] in {">=", "≥"}
    if least != measure.share:
        better = (
            "more is better: give the least share, as >= 95 %"
            if measure.share
            else (
                f"less is better: give the most, as <= 100{' ' * bool(measure.unit)}{measure.unit}"
            )
        )
        raise InputError(
            f"a limit on {measure} goes the other way", field="keep", value=given, expected=better
        )
    bound = _amount(match["rest"].strip(), measure, given)
    return Limit(measure, least=bound) if least else Limit(measure, most=bound)


def _amount(words: str, measure: Measure, given: str) -> float:
    """Read the number of a limit with its unit."""
    match = re.fullmatch(rf"({_NUMBER.pattern})\s*(.*)", words)
    if match is None or not match[1]:
        raise InputError("no number", field="keep", value=given, expected="a number after the sign")
    digits, unit = match[1].replace(",", ""), match[2].strip()
    if measure.share:
        if unit == "%":
            return _share(digits)
        if unit == "" and float(digits) <= 1:
            return float(digits)
        raise _wrong_unit(given, unit, f"a share: 0.95, or 95 % (not {words})")
    wanted = measure.unit
    if unit == wanted or (wanted != "ms" and unit == ""):
        return float(digits)
    if wanted == "ms" and unit in {"s", "sec", "seconds"}:
        raise _wrong_unit(given, unit, f"ms: {number_words(1000 * float(digits))} ms")
    expected = f"{digits} ms" if wanted == "ms" else f"{digits}{' ' * bool(wanted)}{wanted}"
    raise _wrong_unit(given, unit, expected)


def _wrong_unit(given: str, unit: str, expected: str) -> InputError:
    why = f"the unit {unit!r} is not that of the measure" if unit else "the unit is missing"
    return InputError(why, field="keep", value=given, expected=expected)


def _share(digits: str) -> float:
    """Return a percentage as a share, exactly as its digits say."""
    return float(Decimal(digits) / 100)


class _Reader:
    """The tokens of a text, read from left to right."""

    def __init__(self, given: str) -> None:
        self.given = given
        self.tokens = [match[1] for match in _TOKEN.finditer(given) if match[1].strip()]
        self.place = 0

    def next(self) -> str:
        return self.tokens[self.place] if self.place < len(self.tokens) else ""

    def take(self, *words: str) -> bool:
        """Move on over words that stand next, all or none of them."""
        if self.tokens[self.place : self.place + len(words)] != list(words):
            return False
        self.place += len(words)
        return True

    def refuse(self, why: str, expected: str) -> InputError:
        said = f"{self.next()!r} in {self.given!r}" if self.next() else repr(self.given)
        return InputError(f"{why}: {said}", field="measure", expected=expected)

    def need(self, *words: str) -> None:
        if not self.take(*words):
            raise self.refuse("cannot be read", " ".join(words))

    def name(self, expected: str) -> str:
        token = self.next()
        if token.startswith('"') and token.endswith('"') and len(token) > 2:
            self.place += 1
            return re.sub(r"\\(.)", r"\1", token[1:-1], flags=re.S)
        if not _NAME.fullmatch(token):
            raise self.refuse("no name", expected)
        self.place += 1
        return token

    def end(self) -> None:
        if self.next():
            raise self.refuse("cannot be read", "the end, 'after the loss of …' or 'over outages'")

    def measure(self) -> Measure:
        kind, level = self.head()
        operations, clients = self.parts() if self.take("(") else ((), ())
        found = Measure(kind, level, operations, clients)
        if self.take("over", "outages"):
            return replace(found, over_outages=True)
        if self.take("after", "the", "loss", "of"):
            return replace(found, after=self.loss())
        return found

    def head(self) -> tuple[MeasureKind, float | None]:
        match = _PERCENTILE.fullmatch(self.next())
        if match is not None:
            share = _share(match[1])
            if not 0 < share <= 1:
                raise self.refuse("no percentile", "p above 0 and at most 100, such as p99.9")
            self.place += 1
            return MeasureKind.PERCENTILE, share
        if self.take("within"):
            digits = ""
            while self.next() and re.fullmatch(r"[\d.,eE+-]+", self.next()):
                digits += self.next()
                self.place += 1
            if not digits or not _NUMBER.fullmatch(digits):
                raise self.refuse("no deadline", "within 100 ms")
            if not self.take("ms"):
                raise self.refuse("the unit of the deadline is missing or wrong", "within 100 ms")
            return MeasureKind.WITHIN, float(digits.replace(",", ""))
        for words, kind in (
            (("mean",), MeasureKind.MEAN),
            (("slowest", "client"), MeasureKind.SLOWEST),
            (("cost",), MeasureKind.COST),
            (("changes",), MeasureKind.CHANGES),
            (("copied", "GB"), MeasureKind.COPIED),
            (("replicas",), MeasureKind.REPLICAS),
        ):
            if self.take(*words):
                return kind, None

        raise self.refuse("no such measure", suggest(self.next(), _HEADS, "a measure"))

    def parts(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        operations, clients = [], []
        while True:
            if self.take("clients", "in"):
                name = self.name("LEVEL:DOMAIN")
                if ":" not in name:
                    self.place -= 1
                    raise self.refuse("no domain", "LEVEL:DOMAIN, such as continent:EU")
                clients.append(name)
            elif self.take("client"):
                clients.append(self.name("the name of a client"))
            else:
                operations.append(self.name("reads, writes, an operation, or clients in …"))
            if self.take(")"):
                return tuple(operations), tuple(clients)
            self.need(",")

    def loss(self) -> After:
        if self.take("any", "two"):
            quoted = self.next().startswith('"')
            level = self.name("a level of failure domains")
            found = After(level if quoted else _one_of(level), 2)
        elif self.take("any"):
            found = After(self.name("a level of failure domains"))
        else:
            found = After(named=self.name("any LEVEL, a site, or LEVEL:DOMAIN"))
        if self.take(",", *_LEADER_MOVES.split()):
            found = replace(found, leader_moves=True)
        if self.take(",", *_CLIENTS_MOVE.split()):
            found = replace(found, clients_move=True)
        return found
