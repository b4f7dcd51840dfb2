"""Errors and warnings of this package.

One root, :class:`PlacementError`, so that a planner that embeds the package can catch it all in one
place. Bad input is also a :class:`ValueError`, as a caller of a numerical library
expects for a bad argument.

Being infeasible is *not* an error: it is an answer, and comes back as a plan whose status is
``infeasible`` with the reasons beside it. So is running out of time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

__all__ = [
    "CertificateError",
    "InputError",
    "JointInputError",
    "LimitError",
    "MissingDependencyError",
    "PlacementError",
    "PlacementWarning",
    "SolverError",
    "UnitsWarning",
    "UnsupportedError",
]


_LONGEST = 200
"""Most characters of a value in a message."""


_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

MOST_ERRORS = 20
"""Most errors of an input that one message names."""

_MOST_KEPT = 1000
"""Errors of an input after which it is not read on."""


class _Absent:
    """Stands for the value of an error that is about no value; ``None`` is a value."""


def shown(value: object) -> str:
    """Return a value in one line of at most 200 characters, for an error message."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # integers of more than 4,300 digits, deep nesting
        text = f"<{type(value).__name__} that is too large to print>"
    text = " ".join(text.split()) if "\n" in text else text
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def nearest(name: str, known: Iterable[str]) -> str:
    """Return ``" (did you mean 'NAME'?)"`` with the most similar name; empty: none is similar."""
    import difflib

    lower = {one.lower(): one for one in known}
    begun = [one for low, one in lower.items() if low.startswith(str(name).lower())]
    if begun and len(name) > 3:
        return f" (did you mean {min(begun, key=len)!r}?)"
    close = difflib.get_close_matches(str(name).lower(), lower, n=1, cutoff=0.55)
    return f" (did you mean {lower[close[0]]!r}?)" if close else ""


class PlacementError(Exception):
    """Root of all errors of this project."""


class InputError(PlacementError, ValueError):
    """Something the user gave is wrong: says where, what was found, and what was expected.

    Parameters
    ----------
    message
        The whole story in one sentence, without the place.
    source
        File (and row) the value came from; empty for values given from Python.
    field
        Argument, column or key.
    value
        The offending value, as it was given; the message shows at most 200 characters of it.
    expected
        What would have been accepted.

    Examples
    --------
    >>> print(InputError("negative RTT", source="rtt.csv, row 3", field="rtt", value=-4.0,
    ...                  expected="a finite number of milliseconds >= 0"))
    rtt.csv, row 3: rtt: negative RTT: got -4.0, expected a finite number of milliseconds >= 0
    """

    def __init__(
        self,
        message: str,
        *,
        source: str = "",
        field: str = "",
        value: object = _Absent,
        expected: str = "",
    ) -> None:
        self.message = message
        self.source = source
        self.field = field
        self.value = None if value is _Absent else value
        self.expected = expected
        self._given = value
        text = ": ".join(part for part in (source, field, message) if part)
        details = []
        if value is not _Absent:
            details.append(f"got {shown(value)}")
        if expected:
            details.append(f"expected {expected}")
        super().__init__(text + (": " + ", ".join(details) if details else ""))

    @property
    def errors(self) -> tuple[InputError, ...]:
        """The errors that this one names: itself alone, or several of one input."""
        return (self,)

    def at(self, source: str, *, expected: str = "") -> InputError:
        """Return a copy of the error that names its file (or row), or expects something else."""
        joined = ", ".join(filter(None, (source, self.source)))
        return InputError(
            self.message,
            source=joined,
            field=self.field,
            value=self._given,
            expected=expected or self.expected,
        )


class JointInputError(InputError):
    """Several errors of one input, of which the message names the first 20."""

    def __init__(self, errors: Iterable[InputError]) -> None:
        self._errors = tuple(errors)
        shown = [str(error) for error in self._errors[:MOST_ERRORS]]
        more = len(self._errors) - len(shown)
        tail = [f"and {more} more"] if more else []
        many = f"{len(self._errors)} errors" + " or more" * (len(self._errors) >= _MOST_KEPT)
        super().__init__("\n  ".join([f"{many}:", *shown, *tail]))

    @property
    def errors(self) -> tuple[InputError, ...]:
        """The errors, in the order in which they were found."""
        return self._errors

    def at(self, source: str, *, expected: str = "") -> InputError:
        """Return a copy whose errors name their file (or row), or expect something else."""
        return JointInputError(error.at(source, expected=expected) for error in self._errors)


class Gathered:
    """Errors of parts of an input that do not depend on one another, raised together.

    Examples
    --------
    >>> gathered = Gathered()
    >>> for cell in ("x", "1", "y"):
    ...     with gathered.part():
    ...         if not cell.isdecimal():
    ...             raise InputError("not a number", value=cell)
    >>> [str(error) for error in gathered.found]
    ["not a number: got 'x'", "not a number: got 'y'"]
    """

    def __init__(self) -> None:
        self.found: list[InputError] = []

    @contextmanager
    def cells(self) -> Iterator[None]:
        """Keep the errors of cells that :func:`for_each` reads inside, which goes on then."""
        token = _of_cells.set(self)
        try:
            yield
        finally:
            _of_cells.reset(token)

    @contextmanager
    def part(self) -> Iterator[None]:
        """Keep the errors of what is done inside."""
        try:
            yield
        except InputError as error:
            self.add(error)

    def add(self, error: InputError) -> None:
        """Keep an error; the thousandth is the last, and all are raised."""
        self.found.extend(error.errors)
        if len(self.found) >= _MOST_KEPT:
            self.check()

    def check(self) -> None:
        """Raise what was found, if anything was; see :func:`raise_all`."""
        raise_all(self.found)


def raise_all(errors: Sequence[InputError]) -> None:
    """Raise errors together; one alone as it is, and none for none."""
    if errors:
        raise errors[0] if len(errors) == 1 else JointInputError(errors)


_of_cells: ContextVar[Gathered | None] = ContextVar("errors_of_cells", default=None)


def for_each(
    do: Callable[[_Item], _Result], items: Iterable[_Item], otherwise: _Result | None = None
) -> list[_Result]:
    """Return what a function makes of each item; raise the errors of all items together.

    `otherwise` stands for a cell with an error where errors are kept (:meth:`Gathered.cells`).
    """
    gathered, made = Gathered(), []
    kept = None if otherwise is None else _of_cells.get()
    for item in items:
        try:
            made.append(do(item))
        except InputError as error:
            (kept or gathered).add(error)
            made += [] if otherwise is None else [otherwise]
    gathered.check()
    return made


@contextmanager
def located(source: str) -> Iterator[None]:
    """Name the file (or row) of errors that are raised inside and name none."""
    gathered = Gathered()
    with gathered.part():
        yield
    raise_all([error if error.source else error.at(source) for error in gathered.found])


class UnsupportedError(PlacementError):
    """A method does not support a problem; the message names the reason and methods that do."""


class LimitError(PlacementError):
    """The work would exceed a limit that the user has not lifted, as in exhaustive search."""


class SolverError(PlacementError):
    """A solver failed, or said something that the evaluator refutes."""


class MissingDependencyError(PlacementError, ImportError):
    """An optional package is needed; the message names the extra that brings it."""

    @classmethod
    def of(cls, need: str, extra: str) -> MissingDependencyError:
        """Return the error of a `need`, as "Parquet needs pyarrow", that an extra meets."""
        return cls(f"{need}: {install_hint(extra)}")


class CertificateError(PlacementError):
    """Certificate that does not prove the claim of its plan; the message names the first flaw."""


def install_hint(extra: str) -> str:
    """Return the command that installs an extra beside this installation: of a clone, or not."""
    from importlib.metadata import PackageNotFoundError, distribution
    from pathlib import Path

    clone = (Path(__file__).parents[1] / "pyproject.toml").exists()
    try:  # pip notes the folder or the archive that it installed
        place = distribution("replica-placement").read_text("direct_url.json") or ""
    except PackageNotFoundError:
        place = ""
    if clone or '"dir_info"' in place:
        return f"pip install '.[{extra}]' in the clone"
    return f"pip install 'replica-placement[{extra}]'"


def refused(source: str, field: str, problem: str, value: object, expected: str) -> InputError:
    """Return the error about a value in a file, by the parts of its message in their order."""
    return InputError(problem, source=source, field=field, value=value, expected=expected)


def require(
    holds: object,
    field: str,
    problem: str,
    value: object = _Absent,
    expected: str = "",
    *,
    source: str = "",
) -> None:
    """Raise the InputError of these parts unless the condition holds."""
    if not holds:
        raise InputError(problem, source=source, field=field, value=value, expected=expected)


class PlacementWarning(UserWarning):
    """Root of all warnings of this project."""


class UnitsWarning(PlacementWarning):
    """The RTTs look as if they were not milliseconds."""
