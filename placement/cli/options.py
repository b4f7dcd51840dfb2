"""Options: types of values, the parser, and the options that several verbs share.

The options of a question come from the schema in :mod:`placement.question`: :func:`ask` adds the
keys of a group, :func:`complete` fills them from a question file, and
:mod:`placement.cli.problem_options` makes an instance and a problem of them. The messages and exit
codes of the parser are those of this command line.
"""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import math
import re
import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol, TypeAlias, TypeVar, runtime_checkable

from placement.errors import InputError, JointInputError, nearest, refused, require
from placement.question import (
    GROUPS,
    KEYS,
    LARGEST_NUMBER,
    LARGEST_SIZE,
    Key,
    Question,
    read_question,
)
from placement.support.work import WORK

# --- types of arguments: text in, a checked value out, or a message that helps ---------------

_T = TypeVar("_T")

_WHOLE = re.compile(r"[+-]?[0-9]+")
_MOST_DIGITS = 40
"""Digits beyond which a number is out of every range: Python refuses to read more than 4,300."""


def read_whole(value: str, field: str, least: int, most: int) -> int:
    """Read a whole number within a range; the error names `field`, text and range."""
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
    """Read a finite number from `least` (unless it must be `above`) to `most`, or "inf".

    "inf" is a number only where the value may be `infinite`. The error names `field`, text and
    range.
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
    most: float = LARGEST_NUMBER,
    above: bool = False,
) -> dict[str, float]:
    """Read texts ``NAME=NUMBER`` as :func:`read_named_texts`; numbers from 0 to `most`."""
    texts = read_named_texts(values, field, form, known=known)
    return {name: read_number(text, field, 0.0, most, above=above) for name, text in texts.items()}


def read_named_texts(
    values: Iterable[str], field: str, form: str, *, known: Collection[str] | None = None
) -> dict[str, str]:
    """Read texts ``NAME=TEXT``, each name at most once and, if given, one of `known`.

    `field` is the option and `form` what a text looks like, for the message.
    """
    found: dict[str, str] = {}
    for value in values:
        name, equals, told = (piece.strip() for piece in value.partition("="))
        good = bool(equals and name and told) and (known is None or name in known)
        among = "" if known is None else ", a name of " + ", ".join(known)
        problem = "given twice" if good else f"not {form}"
        expected = f"{form}, once for each name{among}"
        require(good and name not in found, field, problem, value, expected)
        found[name] = told
    return found


def whole(least: int = 0, most: int = LARGEST_SIZE) -> Callable[[str], int]:
    """Return a type: a whole number within a range."""
    return _typed(lambda value: read_whole(value, "", least, most))


def number(
    least: float = 0.0, most: float = LARGEST_NUMBER, *, above: bool = False, infinite: bool = False
) -> Callable[[str], float]:
    """Return a type: a finite number within a range; see :func:`read_number`."""
    return _typed(lambda value: read_number(value, "", least, most, above=above, infinite=infinite))


def _typed(read: Callable[[str], _T]) -> Callable[[str], _T]:
    def convert(value: str) -> _T:
        try:
            return read(value)
        except InputError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return convert


@_typed
def text(value: str) -> str:
    """Type: text with something in it, the name of a file, a method, a level or a site."""
    require(value.strip(), "", "empty", value, "a name")
    plain = "\0" not in value and not any("\ud800" <= letter <= "\udfff" for letter in value)
    require(plain, "", "not a name", value, "Unicode text without NUL")
    return value


@_typed
def names(value: str) -> str:
    """Type: names separated by commas, at least one; split where the known names are available."""
    found, expected = value.replace(",", " ").strip(), "names separated by commas"
    require(found, "", "no name in it", value, expected)
    return text(value)


@_typed
def two_numbers(value: str) -> tuple[float, float]:
    """Type: ``A,B``, two finite numbers >= 0."""
    try:
        first, second = (read_number(part, "", 0, LARGEST_NUMBER) for part in value.split(","))
    except ValueError:  # InputError is one
        expected = f"A,B, each >= 0 and <= {LARGEST_NUMBER:g}"
        raise refused("", "", "not two numbers", value, expected) from None
    return first, second


fraction = number(0, 1)
"""Type: a number in [0, 1]."""

seconds = number(0)
"""Type: a length of time in seconds."""

seed = whole(0, 2**63 - 1)
"""Type: the seed of a random generator."""

threads = whole(1, 1024)
"""Type: a number of threads or processes."""

# --- what a verb takes -----------------------------------------------------------------------


@dataclass(frozen=True)
class Switch:
    """An argument of a verb that is no key of a question."""

    names: str  # separated by blanks; a name without dashes is a place on the command line
    metavar: str  # placeholder of the value; empty, and no `type` and `choices`: a flag
    help: str
    # type, default, choices, required, nargs and const are as argparse takes them
    type: Callable[[str], object] | None = None
    default: object = None
    choices: Sequence[str] = ()
    several: bool = False  # whether it may be repeated
    required: bool = False
    nargs: int | str | None = None
    const: object = None
    toggle: bool = False  # whether a flag may be turned off, by --no-…

    def add_to(self, group: argparse._ActionsContainer) -> None:
        """Add the argument to a parser or a group."""
        names = self.names.split()
        more: dict[str, Any] = {"required": self.required} if names[0].startswith("-") else {}
        if not (self.metavar or self.type or self.choices):
            if self.toggle:
                more |= {"action": argparse.BooleanOptionalAction, "default": self.default}
            group.add_argument(*names, help=self.help, **{"action": "store_true", **more})
            return
        more |= {"const": self.const} if self.nargs == "?" else {}
        group.add_argument(
            *names, action="append" if self.several else "store", nargs=self.nargs,
            metavar=self.metavar or None, help=self.help, type=self.type or text,
            choices=self.choices or None,
            default=list(self.default) if isinstance(self.default, tuple) else self.default, **more,
        )  # fmt: skip


WORK_LIMIT = Switch(
    "--work", "STEPS", "most steps for what the file asks for (default 1,000,000,000, two to four "
    "minutes); a plan or certificate that needs more ends with exit code 1",
    whole(1, 10**15), WORK,
)  # fmt: skip
PROGRESS = Switch(
    "--progress", "", "show the progress on stderr (default: if stderr is a terminal)",
    toggle=True,
)  # fmt: skip
FORCE = Switch("--force", "", "replace existing files")
EMBED = Switch("--embed", "", "store the instance in the plan file, in place of a reference to it")
PLOT = Switch("--plot", "FILE", "draw the table: .png, .svg or .pdf")


# --- the parser ------------------------------------------------------------------------------

Subparsers: TypeAlias = "argparse._SubParsersAction[Parser]"  # noqa: SLF001 - argparse has no public name for it
"""Type of the object that ``add_subparsers()`` returns."""


def add_verb(verbs: Subparsers, name: str, run: Callable[[argparse.Namespace], int]) -> Parser:
    """Add a verb that `run` runs, described by its docstring."""
    line, _, rest = (inspect.getdoc(run) or name).partition("\n")
    words = " ".join([line, *rest.split()])
    line = line[:1].lower() + line[1:].rstrip(".")
    parser = verbs.add_parser(name, help=line, description=words)
    parser.set_defaults(run=run)
    return parser


def written(meaning: str) -> tuple[Switch, Switch]:
    """Return ``--output`` and ``--force``."""
    return Switch("-o --output", "FILE", meaning), FORCE


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

    def ask(
        self,
        *groups: str,
        only: Sequence[str] = (),
        leave: Sequence[str] = (),
        required: Sequence[str] = ("replicas",),
        title: str = "",
        helps: Mapping[str, str] | None = None,
        option: bool = False,
        optional: bool = False,
    ) -> None:
        """Add the options of groups of keys of a question (:data:`placement.question.GROUPS`).

        `only` some keys are added, or all but those to `leave`; those `required` must be given, by
        an option or the file. `title` and `helps` replace the title of the group and help texts of
        keys. The instance is the first argument, which may be `optional`, or the `option`
        ``--instance``, which must be given.
        """
        asked: dict[str, bool] = dict(self.get_default("asked") or {})
        for name in groups:
            group = self._group(title or GROUPS[name])
            for key in (key for key in KEYS.values() if key.group == name and key.option):
                if key.name in leave or (only and key.name not in only):
                    continue
                asked[key.name] = key.name in required
                meaning = (helps or {}).get(key.name, key.help)
                if key.name == "instance":
                    kind: dict[str, Any] = {"required": True} if option else {}
                    kind |= {"nargs": "?"} if optional else {}
                    kind |= {"help": f"{meaning}, or a question file (.toml)"}
                    place = "--instance" if option else "instance"
                    group.add_argument(place, metavar="INSTANCE", **kind)
                    continue
                aliases = [each for each in key.alias if each not in leave]
                group.add_argument(
                    key.option, *aliases, dest=key.name, action=_Set, const=key.several,
                    type=_type(key), choices=key.choices or None, metavar=key.metavar or None,
                    default=list(key.default) if key.several else key.default, help=meaning,
                )  # fmt: skip
        self.set_defaults(asked=asked)
        if "replicas" in asked:
            self.epilog = (
                "Sites are given by name; lists are separated by commas, and an option may be "
                "repeated. A name that contains a comma is taken whole when it stands alone in its "
                "option."
            )

    def add(self, title: str, *options: Switch, one: bool = False, required: bool = False) -> None:
        """Add options to the group with a title (empty: to none), of `one` group at most one."""
        group: argparse._ActionsContainer = self._group(title) if title else self
        group = group.add_mutually_exclusive_group(required=required) if one else group
        for each in options:
            each.add_to(group)

    def _group(self, title: str) -> argparse._ArgumentGroup:
        found = (group for group in self._action_groups if group.title == title)
        return next(found, None) or self.add_argument_group(title)

    def add_output(self, file: str = "", *, tables: bool = True, title: str = "output") -> None:
        """Add ``--json``, ``--csv`` for `tables`, and ``-o`` and ``--force`` for a `file`."""
        shapes = [Switch("--json", "", "one JSON document on stdout")]
        shapes += [Switch("--csv", "", "the tables as CSV on stdout")] if tables else []
        self.add(title, *shapes, one=True)
        self.add(title, *(written(file) if file else ()))

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


# --- adding the keys of a question -----------------------------------------------------------


class _Set(argparse.Action):
    """Sets a key of the question, and notes that the user gave it; lists begin empty."""

    def __call__(self, parser: Any, namespace: Any, values: Any, *_: object) -> None:
        given: set[str] = vars(namespace).setdefault("given", set())
        if self.const:  # several
            values = [*(getattr(namespace, self.dest) if self.dest in given else ()), values]
        setattr(namespace, self.dest, values)
        given.add(self.dest)


def _type(key: Key) -> Callable[[str], object]:
    if key.kind in ("whole", "number"):
        if key.kind == "whole":
            return whole(int(key.least), int(key.most))
        return number(key.least, key.most, above=key.above, infinite=key.infinite)
    return names if key.kind in ("size", "names") else text


def complete(args: argparse.Namespace) -> None:
    """Fill the keys of a question that no option gives from the question file of the arguments.

    A key that must be given and is not, and a wrong ``--set``, are refused.
    """
    asked: dict[str, bool] | None = vars(args).get("asked")
    if asked is None:
        return
    args.question = None
    source = vars(args).get("instance")
    if isinstance(source, str) and source.lower().endswith(".toml"):
        args.question = question = read_question(source, others=_verbs_with)
        given: set[str] = vars(args).get("given", set())
        for key, value in question.given():
            if key.name in asked and key.name not in given and key.name != "instance":
                setattr(args, key.name, list(value) if key.several else value)
        if question.instance is None and question.rtt is None:
            raise InputError(
                "no instance", source=question.source, field="instance",
                expected='instance = "azure", or a table [instance] with rtt, demand and sites',
            )  # fmt: skip
        if question.instance is not None:
            args.instance = question.instance
    _override(args, asked)
    for key in (KEYS[name] for name in sorted(vars(args).get("given", ()))):
        if key.needs and getattr(args, key.needs) in (None, []):
            words = f"does nothing without {KEYS[key.needs].option}"
            raise InputError(words, field=key.option, value=getattr(args, key.name))
    missing = [
        KEYS[name].option for name, must in asked.items() if must and not getattr(args, name)
    ]
    if missing:
        words = f"the following arguments are required: {', '.join(missing)}"
        raise InputError(f"{words} (see {args.command} --help)")


def of_file(error: InputError, args: argparse.Namespace) -> InputError:
    """Return an error that names the line of the question file, where its value stands there."""
    question: Question | None = vars(args).get("question")
    given = vars(args).get("given", ())

    def placed(one: InputError) -> InputError:
        keys = (k for k in KEYS.values() if one.field and one.field in (k.option, k.field, k.name))
        key = next((k for k in keys if question and k.name in question.lines), None)
        if key is None or question is None or key.name in given or one.source:
            return one
        return one.at(question.at(key.name))

    found = [placed(one) for one in error.errors]
    return found[0] if len(found) == 1 else JointInputError(found)


def _override(args: argparse.Namespace, asked: Mapping[str, bool]) -> None:
    """Take the keys of the question out of ``--set``: ``--set keep+='cost <= 4000'``."""
    settings = []
    for text in vars(args).get("set") or ():
        name, equals, value = text.partition("=")
        adds = name.endswith("+")
        name = name.rstrip("+").strip()
        key = KEYS.get(name.replace("-", "_"))
        if not equals or key is None or key.name not in asked or key.name == "set":
            if adds:
                expected = "KEY+=VALUE with a key of the question that this verb takes"
                raise refused("", "--set", f"unknown key{nearest(name, asked)}", text, expected)
            settings.append(text)
            continue
        words = "the key has one value"
        require(key.several or not adds, "--set", words, text, f"{name}=VALUE")
        if key.name == "instance":
            args.instance = value
            continue
        try:
            read = _type(key)(value)
        except argparse.ArgumentTypeError as error:
            raise InputError(f"{name}: {error}", field="--set", value=text) from None
        before = getattr(args, key.name) if adds else ()
        setattr(args, key.name, [*(before or ()), read] if key.several else read)
    if "set" in vars(args):
        args.set = settings


def _verbs_with(option: str) -> str:
    """Name the verbs that have an option, for an unknown key of a question."""
    from placement.cli.dispatch import option_owners

    return ", ".join(f"placement {verb}" for verb in option_owners(f"--{option}")[:3])


def question_of(args: argparse.Namespace) -> Question:
    """Return the question of the arguments, as a file would hold it."""
    found: Question = args.question or Question()
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in vars(args).items()
        if name in KEYS
    }
    if found.rtt is not None and found.instance is None:
        values.pop("instance")
    return dataclasses.replace(found, **values)


# --- method ----------------------------------------------------------------------------------


def limits_from(args: argparse.Namespace) -> dict[str, Any]:
    """Return the limits, the seed and the threads, as keywords of :func:`placement.solve`."""
    limits = {"time_limit": args.time_limit, "gap_limit": args.gap}
    return {**limits, "seed": args.seed, "threads": args.threads}


def settings_from(args: argparse.Namespace, form: str = "NAME=VALUE") -> dict[str, object]:
    """Read ``--set``; the method checks and converts the values."""
    settings: dict[str, object] = {}
    for text in args.set:
        name, equals, value = text.partition("=")
        parts, dots = name.strip().split(".", form.count(".")), form.count(".")
        whole_name = equals and all(parts) and len(parts) > dots
        require(whole_name, "--set", "not a setting", text, form)
        require(name.strip() not in settings, "--set", "set twice", name.strip(), "once")
        settings[name.strip()] = value
    return settings
