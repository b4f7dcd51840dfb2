"""Errors and warnings of this package.

One root, :class:`PlacementError`, so that a planner that embeds the package can catch it all in one
place. Bad input is also a :class:`ValueError`, as a caller of a numerical library
expects for a bad argument.

Being infeasible is *not* an error: it is an answer, and comes back as a plan whose status is
``infeasible`` with the reasons beside it. So is running out of time.
"""

from __future__ import annotations

__all__ = [
    "CertificateError",
    "InputError",
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
        """Return the error of a `need`, as "pictures need matplotlib", that an extra meets."""
        return cls(f"{need}: {install_hint(extra)}")


class CertificateError(PlacementError):
    """Certificate that does not prove the claim of its plan; the message names the first flaw."""


def install_hint(extra: str) -> str:
    """Return the commands that install an extra: from a clone, and from a package index."""
    return f"pip install '.[{extra}]' in a clone, or pip install 'replica-placement[{extra}]'"


class PlacementWarning(UserWarning):
    """Root of all warnings of this project."""


class UnitsWarning(PlacementWarning):
    """The RTTs look as if they were not milliseconds."""
