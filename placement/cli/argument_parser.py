"""Argument parser with the messages and exit codes of this command line."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn, Protocol, TypeAlias, runtime_checkable

from placement.cli.argument_types import text
from placement.errors import InputError

__all__ = ["Parser", "Subparsers", "Verb"]

Subparsers: TypeAlias = "argparse._SubParsersAction[Parser]"  # noqa: SLF001 - argparse has no public name for it
"""Type of the object that ``add_subparsers()`` returns."""


class Parser(argparse.ArgumentParser):
    """A parser whose complaints are InputErrors: exit code 1, since 2 means infeasible here."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # An abbreviation that is unique today means something else after the next release.
        kwargs.setdefault("allow_abbrev", False)
        super().__init__(*args, **kwargs)
        self.register("type", None, text)  # no option takes an empty string

    def add_subparsers(self, **kwargs: Any) -> Any:
        """Add sub-parsers, each of which checks the arguments of its verb."""
        action = super().add_subparsers(**kwargs)
        action.type = str  # it would be applied to every argument after the verb
        return action

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing usage and exiting with code 2."""
        raise InputError(f"{message.removeprefix('argument ')} (see {self.prog} --help)")


@runtime_checkable
class Verb(Protocol):
    """Interface of the module of a verb."""

    def add_parser(self, verbs: Subparsers) -> None:
        """Add the verb's options; the parser's default ``run`` is the function below."""

    def run(self, args: argparse.Namespace) -> int:
        """Run the verb and return an exit code."""
