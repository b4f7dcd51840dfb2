"""Completion of words in a shell, by argcomplete.

The shell runs ``placement`` at each press of the Tab key and tells the line in the environment
variable ``COMP_LINE``. The parser of the verb knows the options; the values of an option are found
by its metavar, so that a new option of a known kind needs nothing here.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from placement.errors import InputError, MissingDependencyError, PlacementError

if TYPE_CHECKING:
    from placement.model.instance import Instance

__all__ = ["answer_shell", "asked_by_shell", "shell_script", "typed_words"]

_Values = Callable[[str, argparse.Namespace], list[str]]
"""Completions of a prefix, given the arguments that stand on the line already."""


def asked_by_shell() -> bool:
    """Return whether this process runs to complete a word for a shell."""
    return "_ARGCOMPLETE" in os.environ


def typed_words() -> list[str]:
    """Return the complete words after the program's name on the line of the shell."""
    line = os.environ.get("COMP_LINE", "")
    line = line[: int(os.environ.get("COMP_POINT", len(line)))]
    words = line.split()[1:]
    return words if line.endswith(" ") else words[:-1]


def answer_shell(parser: argparse.ArgumentParser) -> None:
    """Answer the shell with the words that can come next, and end the process.

    Without argcomplete there is no answer, and this returns.
    """
    try:
        import argcomplete
    except ImportError:
        return
    for action in _actions(parser):
        values = _values_of(action)
        if values is not None:
            action.completer = _Completer(values)  # type: ignore[attr-defined]
    argcomplete.autocomplete(parser)


def shell_script(shell: str) -> str:
    """Return the lines that teach a shell to complete ``placement``.

    Raises
    ------
    MissingDependencyError
        Without argcomplete.
    """
    try:
        from argcomplete.shell_integration import shellcode
    except ImportError as error:
        raise MissingDependencyError.of("completion needs argcomplete", "completion") from error
    return str(shellcode(["placement"], shell=shell))


class _Completer:
    """Values of an option, in the interface of argcomplete; bad input gives no values."""

    def __init__(self, values: _Values) -> None:
        self._values = values

    def __call__(
        self,
        prefix: str,
        action: argparse.Action,
        parser: argparse.ArgumentParser,
        parsed_args: argparse.Namespace,
    ) -> list[str]:
        try:
            return self._values(prefix, parsed_args)
        except (PlacementError, OSError):
            return []


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the arguments of a parser and of its verbs."""
    for action in parser._actions:  # noqa: SLF001 - argparse has no public name for it
        yield action
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for below in action.choices.values():
                yield from _actions(below)


def _values_of(action: argparse.Action) -> _Values | None:
    if not {"--method", "--methods"}.isdisjoint(action.option_strings):
        return _methods
    return _BY_METAVAR.get(str(action.metavar))


def _beginning(prefix: str, values: Iterable[str]) -> list[str]:
    """Return the values that go on from the prefix; after a comma, for the last of a list."""
    head, comma, last = prefix.rpartition(",")
    return [head + comma + value for value in values if value.startswith(last)]


def _instances(prefix: str, given: argparse.Namespace) -> list[str]:
    from argcomplete.completers import FilesCompleter

    from placement import datasets

    return _beginning(prefix, datasets.names()) + list(FilesCompleter()(prefix))


def _methods(prefix: str, given: argparse.Namespace) -> list[str]:
    from placement.methods.registry import available

    return _beginning(prefix, available())


def _protocols(prefix: str, given: argparse.Namespace) -> list[str]:
    from placement.model.protocol_families import FAMILIES
    from placement.model.protocol_parts.protocol_kinds import KINDS

    return _beginning(prefix, [*FAMILIES, *(f"{kind}={one}" for kind in KINDS for one in FAMILIES)])


def _levels(prefix: str, given: argparse.Namespace) -> list[str]:
    return _beginning(prefix, _instance(given).levels)


def _sites(prefix: str, given: argparse.Namespace) -> list[str]:
    return _beginning(prefix, _instance(given).sites)


def _instance(given: argparse.Namespace) -> Instance:
    """Return the instance that the line names."""
    from placement.api import load

    source = vars(given).get("instance")
    if source is None:
        raise InputError("no instance on the line")
    return load(source)


_BY_METAVAR: dict[str, _Values] = {
    "INSTANCE": _instances,
    "SITE": _sites,
    "SITES": _sites,
    "N|SITES": _sites,
    "N|LO..HI|SITES": _sites,
    "LEVEL": _levels,
    "[KIND=]NAME[:PARAMETER=VALUE,…]": _protocols,
}
