"""Argument parser with the messages and exit codes of this command line."""

from __future__ import annotations

import argparse
import inspect
import math
import re
import textwrap
from collections.abc import Callable, Collection, Iterable
from typing import Any, NoReturn, Protocol, TypeAlias, TypeVar, runtime_checkable

from placement.errors import InputError, nearest, shown
from placement.question import KEYS, LARGEST_NUMBER, LARGEST_SIZE

# Types of arguments for argparse: text in, a checked value out, or a message that helps

_T = TypeVar("_T")

_WHOLE = re.compile(r"[+-]?[0-9]+")
_MOST_DIGITS = 40
"""Digits beyond which a number is out of every range: Python refuses to read more than 4,300."""


def read_whole(value: str, field: str, least: int, most: int) -> int:
    """Read a whole number within a range.

    Raises
    ------
    InputError
        With the field, the text and the range.
    """
    stripped = value.strip()
    if not _WHOLE.fullmatch(stripped):
        problem, given = "not a whole number", value
    elif len(stripped) > _MOST_DIGITS or not least <= int(stripped) <= most:
        problem, given = "out of range", stripped
    else:
        return int(stripped)
    expected = f"a whole number >= {least} and <= {most}"
    raise InputError(problem, field=field, value=given, expected=expected)


def read_number(
    value: str,
    field: str,
    least: float,
    most: float,
    *,
    above: bool = False,
    infinite: bool = False,
) -> float:
    """Read a finite number within a range, or "inf" where that has a meaning.

    Parameters
    ----------
    value, field
        The text, and the name for the message.
    least, most
        The range.
    above
        Whether the number must be greater than `least`.
    infinite
        Whether infinity is accepted as well.

    Raises
    ------
    InputError
        With the field, the text and the range.
    """
    try:
        result = float(value)
    except ValueError:
        result, problem = math.nan, "not a number"
    else:
        problem = "out of range"
    if infinite and value.strip().lower() in ("inf", "infinity"):
        return math.inf
    if least <= result <= most and not (above and result == least):
        return result
    expected = f"a finite number {'>' if above else '>='} {least:g} and <= {most:g}"
    raise InputError(problem, field=field, value=value, expected=expected)


def read_named_numbers(
    values: Iterable[str],
    field: str,
    form: str,
    *,
    known: Collection[str] | None = None,
    least: float = 0.0,
    most: float = LARGEST_NUMBER,
    above: bool = False,
) -> dict[str, float]:
    """Read texts ``NAME=NUMBER``, each name at most once.

    Parameters
    ----------
    values, field
        The texts, and the name of the option for the message.
    form
        What one of them looks like, for the message: ``SITE=SHARE``.
    known
        The names that there are; None: any.
    least, most, above
        Range of the numbers, as in :func:`read_number`.

    Raises
    ------
    InputError
        With the option and the text, for a text of another form, an unknown name, a name given
        twice, and a number out of range.
    """
    texts = read_named_texts(values, field, form, known=known)
    return {
        name: read_number(text, field, least, most, above=above) for name, text in texts.items()
    }


def read_named_texts(
    values: Iterable[str], field: str, form: str, *, known: Collection[str] | None = None
) -> dict[str, str]:
    """Read texts ``NAME=TEXT``, each name at most once.

    Parameters
    ----------
    values, field, form, known
        As :func:`read_named_numbers` takes them.

    Raises
    ------
    InputError
        With the option and the text, for a text of another form, an unknown name, and a name given
        twice.
    """
    found: dict[str, str] = {}
    for value in values:
        name, equals, told = (piece.strip() for piece in value.partition("="))
        good = bool(equals and name and told) and (known is None or name in known)
        if not good or name in found:
            among = "" if known is None else ", a name of " + ", ".join(known)
            problem = "given twice" if good else f"not {form}"
            raise InputError(
                problem, field=field, value=value, expected=f"{form}, once for each name{among}"
            )
        found[name] = told
    return found


def whole(least: int = 0, most: int = LARGEST_SIZE) -> Callable[[str], int]:
    """Return a type: a whole number within a range."""
    return _typed(lambda value: read_whole(value, "", least, most))


def whole_numbers(value: str) -> tuple[int, ...]:
    """Type: whole numbers >= 1 with commas between them."""
    return tuple(whole(1)(part) for part in value.split(","))


def number(
    least: float = 0.0, most: float = LARGEST_NUMBER, *, above: bool = False, infinite: bool = False
) -> Callable[[str], float]:
    """Return a type: a finite number within a range; see :func:`read_number`."""
    return _typed(lambda value: read_number(value, "", least, most, above=above, infinite=infinite))


def text(value: str) -> str:
    """Type: text with something in it, the name of a file, a method, a level or a site."""
    if not value.strip():
        raise argparse.ArgumentTypeError(f"empty: got {shown(value)}, expected a name")
    if "\0" in value or any("\ud800" <= letter <= "\udfff" for letter in value):
        raise argparse.ArgumentTypeError(
            f"not a name: got {shown(value)}, expected Unicode text without NUL"
        )
    return value


def names(value: str) -> str:
    """Type: names separated by commas, at least one; split where the known names are available."""
    if not value.replace(",", " ").strip():
        raise argparse.ArgumentTypeError(
            f"no name in it: got {shown(value)}, expected names separated by commas"
        )
    return text(value)


def two_numbers(value: str) -> tuple[float, float]:
    """Type: ``A,B``, two finite numbers >= 0."""
    parts = value.split(",")
    try:
        first, second = (read_number(part, "", 0, LARGEST_NUMBER) for part in parts)
    except ValueError as error:  # InputError is one
        raise argparse.ArgumentTypeError(
            f"not two numbers: got {shown(value)}, expected A,B, each >= 0 and "
            f"<= {LARGEST_NUMBER:g}"
        ) from error
    return first, second


def _typed(read: Callable[[str], _T]) -> Callable[[str], _T]:
    def convert(value: str) -> _T:
        try:
            return read(value)
        except InputError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return convert


fraction = number(0, 1)
"""Type: a number in [0, 1]."""

seconds = number(0)
"""Type: a length of time in seconds."""

seed = whole(0, 2**63 - 1)
"""Type: the seed of a random generator."""

threads = whole(1, 1024)
"""Type: a number of threads or processes."""

Subparsers: TypeAlias = "argparse._SubParsersAction[Parser]"  # noqa: SLF001 - argparse has no public name for it
"""Type of the object that ``add_subparsers()`` returns."""


def add_verb(
    verbs: Subparsers, name: str, run: Callable[[argparse.Namespace], int],
    told: Callable[..., object] | None = None,
) -> Parser:  # fmt: skip
    """Add a verb that `run` runs, described by the docstring of `told` (None: of `run`)."""
    line, _, rest = (inspect.getdoc(told or run) or name).partition("\n")
    words = " ".join([line, *rest.split()])
    line = line[:1].lower() + line[1:].rstrip(".")
    parser = verbs.add_parser(name, help=line, description=words)
    parser.set_defaults(run=run)
    return parser


class _ShortHelp(argparse.Action):
    """Prints the main options in one screen."""

    def __call__(self, parser: argparse.ArgumentParser, *given: object) -> NoReturn:
        assert isinstance(parser, Parser)
        print(parser.short_help())
        parser.exit()


MOST_SHORT = 14
"""Most options that ``-h`` shows."""

MOST_LINES = 40
"""Most lines of ``-h``."""

_RARE = ("--force", "--embed", "--progress", "--work", "--json", "--output", "--csv", "--plot")


class Parser(argparse.ArgumentParser):
    """A parser whose complaints are InputErrors: exit code 1, since 2 means infeasible here.

    ``-h`` shows at most 14 options in one screen, ``--help`` all of them.
    """

    def __init__(self, *args: Any, add_help: bool = True, **kwargs: Any) -> None:
        # An abbreviation that is unique today means something else after the next release.
        kwargs = {"allow_abbrev": False, **kwargs, "add_help": False}
        super().__init__(*args, **kwargs)
        self.register("type", None, text)  # no option takes an empty string
        self.set_defaults(command=self.prog)
        self._needed: dict[str, str] = {}
        if add_help:
            self.add_argument(
                "-h", action=_ShortHelp, nargs=0, default=argparse.SUPPRESS,
                help="show the main options",
            )  # fmt: skip
            self.add_argument("--help", action="help", help="show all options, in groups")

    def add_subparsers(self, **kwargs: Any) -> Any:
        """Add sub-parsers, each of which checks the arguments of its verb."""
        action = super().add_subparsers(**kwargs)
        action.type = str  # it would be applied to every argument after the verb
        return action

    def needs(self, **others: str) -> None:
        """Refuse options that do nothing without another one: ``needs(poll="follow")``."""
        self._needed |= others

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Parse as argparse does. An option that needs another one is refused without it."""
        found, unknown = super().parse_known_args(args, namespace)
        for name, other in self._needed.items():
            given, needed = getattr(found, name), getattr(found, other)
            if given != self.get_default(name) and needed == self.get_default(other):
                words = f"does nothing without --{other.replace('_', '-')}"
                raise InputError(words, field=f"--{name.replace('_', '-')}", value=given)
        return found, unknown

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing usage and exiting with code 2."""
        message = message.removeprefix("argument ")
        found = re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message)
        if found:
            known = [one.strip().strip("'") for one in found[2].split(",")]
            message += nearest(found[1], known)
        raise InputError(f"{message} (see {self.prog} --help)")

    @property
    def example(self) -> str:
        """An example of the verb; empty: none is known."""
        from placement.cli.dispatch import EXAMPLES

        found = EXAMPLES.get(self.prog.removeprefix("placement "), "")
        return f"placement {found}" if found else ""

    def main_options(self) -> list[argparse.Action]:
        """Return the options that ``-h`` shows: the required ones, then the main ones."""
        options = options_shown(self)

        def rank(action: argparse.Action) -> int:
            names, key = action.option_strings, KEYS.get(action.dest)
            if action.required:
                return 0
            if key is not None and key.option in names:
                return 1 if key.short else 4
            if "-o" in names or "--json" in names:
                return 2
            return 5 if any(name in _RARE for name in names) else 3

        chosen = {id(action) for action in sorted(options, key=rank)[:MOST_SHORT]}
        return [action for action in options if id(action) in chosen]

    def short_help(self) -> str:
        """Return the main options, a line each, and an example."""
        lines = [f"usage: {self.prog} " + " ".join(self._places()) + " [options]", ""]
        lines += textwrap.wrap((self.description or "").partition(". ")[0].rstrip(".") + ".", 79)
        rows: list[tuple[str, str]] = []
        for action in (a for a in self._actions if not a.option_strings):
            if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - no public name
                rows += [(str(c.dest), str(c.help or "")) for c in action._choices_actions]  # noqa: SLF001 - no public name
            elif action.help:
                rows.append((str(action.metavar or action.dest), action.help))
        rows.append(("", ""))
        for action in self.main_options():
            value = "" if action.nargs == 0 else str(action.metavar or action.dest.upper())
            rows.append((f"{action.option_strings[0]} {value}".strip(), str(action.help or "")))
        width = min(26, max(len(name) for name, _ in rows)) + 2
        room = MOST_LINES - len(lines) - 4
        for most in (2, 1):
            shown = [line for name, meaning in rows for line in _row(name, meaning, width, most)]
            if len(shown) <= room:
                break
        lines += shown
        if self.example:
            lines += ["", f"example: {self.example}"]
        hidden = len(options_shown(self)) - len(self.main_options())
        return "\n".join([*lines, "", f"{self.prog} --help: {max(0, hidden)} more options"])

    def _places(self) -> list[str]:
        """Return the arguments of the usage that are no options."""
        found = []
        for action in (a for a in self._actions if not a.option_strings):
            name = str(action.metavar or action.dest)
            found.append(f"[{name}]" if action.nargs == "?" else name)
        return found

    def format_help(self) -> str:
        """Return all options in groups, with an example."""
        example = f"\nexample: {self.example}\n" if self.example else ""
        return super().format_help() + example


def _row(name: str, meaning: str, width: int, most: int) -> list[str]:
    """Return an argument with its meaning, in a number of lines at most."""
    left = f"  {name:<{width - 1}} "
    words = textwrap.wrap(
        meaning.replace("%%", "%"), max(20, 79 - len(left)), max_lines=most, placeholder=" …"
    )
    return [
        (left + (words[0] if words else "")).rstrip(),
        *(" " * len(left) + w for w in words[1:]),
    ]


def options_shown(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Return the options of a parser that its help shows, but for those of the help itself."""
    shown = [a for a in parser._actions if a.option_strings and a.help != argparse.SUPPRESS]  # noqa: SLF001
    return [action for action in shown if action.option_strings[0] not in ("-h", "--help")]


@runtime_checkable
class Verb(Protocol):
    """Interface of the module of a verb."""

    def add_parser(self, verbs: Subparsers) -> None:
        """Add the verb's options; the parser's default ``run`` returns an exit code."""
