"""Options that several verbs share, and the objects they become.

The options of a question come from the schema in :mod:`placement.question`: :func:`ask` adds the
keys of a group, :func:`complete` fills them from a question file, and
:mod:`placement.cli.problem_options` makes an instance and a problem of them.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from placement.cli import argument_parser as types
from placement.errors import InputError, JointInputError, nearest
from placement.question import GROUPS, KEYS, Key
from placement.support.work import WORK

if TYPE_CHECKING:
    from placement.question import Question


# --- adding the keys of a question -----------------------------------------------------------


class _Set(argparse.Action):
    """Sets a key of the question, and notes that the user gave it; lists begin empty."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        given: set[str] = vars(namespace).setdefault("given", set())
        if self.const:  # several
            values = [*(getattr(namespace, self.dest) if self.dest in given else ()), values]
        setattr(namespace, self.dest, values)
        given.add(self.dest)


def ask(
    parser: argparse.ArgumentParser,
    *groups: str,
    only: Sequence[str] = (),
    leave: Sequence[str] = (),
    required: Sequence[str] = ("replicas",),
    title: str = "",
    helps: Mapping[str, str] | None = None,
    option: bool = False,
    optional: bool = False,
) -> argparse._ArgumentGroup:
    """Add the options of groups of keys of a question; return the group of the last one.

    Parameters
    ----------
    parser
        Of the verb.
    groups
        Of :data:`placement.question.GROUPS`.
    only, leave
        Keys that alone are added; keys that are not. None: all of the groups.
    required
        Keys that must be given, by an option or the file.
    title
        Of the group in the help, in place of its own.
    helps
        Other help texts of keys.
    option
        Whether the instance is an option ``--instance`` that must be given, instead of the first
        argument.
    optional
        Whether the first argument may be left out.
    """
    asked: dict[str, bool] = dict(parser.get_default("asked") or {})
    for name in groups:
        group = parser.add_argument_group(title or GROUPS[name])
        for key in (key for key in KEYS.values() if key.group == name and key.option):
            if key.name in leave or (only and key.name not in only):
                continue
            asked[key.name] = key.name in required
            meaning = (helps or {}).get(key.name, key.help)
            if key.name == "instance":
                kind: dict[str, Any] = {"required": True} if option else {}
                kind |= {"nargs": "?"} if optional else {}
                kind |= {"help": f"{meaning}, or a question file (.toml)", "metavar": "INSTANCE"}
                group.add_argument("--instance" if option else "instance", **kind)
                continue
            aliases = [each for each in key.alias if each not in leave]
            group.add_argument(
                key.option, *aliases, dest=key.name, action=_Set, const=key.several,
                type=_type(key), choices=key.choices or None, metavar=key.metavar or None,
                default=list(key.default) if key.several else key.default, help=meaning,
            )  # fmt: skip
    parser.set_defaults(asked=asked)
    if "replicas" in asked:
        parser.epilog = (
            "Sites are given by name; lists are separated by commas, and an option may be "
            "repeated. A name that contains a comma is taken whole when it stands alone in its "
            "option."
        )
    return group


def _type(key: Key) -> Callable[[str], object]:
    if key.kind in ("whole", "number"):
        if key.kind == "whole":
            return types.whole(int(key.least), int(key.most))
        return types.number(key.least, key.most, above=key.above, infinite=key.infinite)
    return types.names if key.kind in ("size", "names") else types.text


def complete(args: argparse.Namespace) -> None:
    """Fill the keys of a question that no option gives from the question file of the arguments.

    Raises
    ------
    InputError
        For a file that is no question, a key that must be given and is not, and a wrong ``--set``.
    """
    asked: dict[str, bool] | None = vars(args).get("asked")
    if asked is None:
        return
    args.question = None
    source = vars(args).get("instance")
    if isinstance(source, str) and source.lower().endswith(".toml"):
        from placement.question import read_question

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


GONE = {
    "--worst": "--minimise 'mean after the loss of any site'",
    "--weighted": "--minimise 'mean over outages' --outage NAME=P",
    "--limit": "--keep 'mean after the loss of any site <= 100 ms'",
    "--level": "--minimise 'mean after the loss of any LEVEL'",
    "--pairs": "--minimise 'mean after the loss of any two sites'",
    "--leader-may-move": "'…, the leader may move' at the end of a measure after a loss",
    "--clients-move": "'…, clients move' at the end of a measure after a loss",
}
"""Options about losses that measures took the place of."""


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
                raise InputError(
                    f"unknown key{nearest(name, asked)}", field="--set", value=text,
                    expected="KEY+=VALUE with a key of the question that this verb takes",
                )  # fmt: skip
            settings.append(text)
            continue
        if adds and not key.several:
            raise InputError(
                "the key has one value", field="--set", value=text, expected=f"{name}=VALUE"
            )
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
    from placement.question import Question

    found: Question = args.question or Question()
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in vars(args).items()
        if name in KEYS
    }
    if found.rtt is not None and found.instance is None:
        values.pop("instance")
    return dataclasses.replace(found, **values)


# --- other options ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Switch:
    """An option of a verb that is no key of a question.

    Attributes
    ----------
    names
        Separated by blanks.
    metavar
        Placeholder of the value; empty, and no `type` and `choices`: a flag.
    help
        What it says.
    type, default, choices, required
        As argparse takes them.
    several
        Whether it may be repeated.
    """

    names: str
    metavar: str
    help: str
    type: Callable[[str], object] | None = None
    default: object = None
    choices: Sequence[str] = ()
    several: bool = False
    required: bool = False


def add_options(group: argparse._ActionsContainer, *options: Switch) -> None:
    """Add options in their order."""
    for each in options:
        if not (each.metavar or each.type or each.choices):
            group.add_argument(*each.names.split(), action="store_true", help=each.help)
            continue
        group.add_argument(
            *each.names.split(), action="append" if each.several else "store",
            metavar=each.metavar or None, help=each.help, type=each.type or types.text,
            required=each.required, choices=each.choices or None,
            default=list(each.default) if isinstance(each.default, tuple) else each.default,
        )  # fmt: skip


def add_configuration(parser: argparse.ArgumentParser) -> None:
    """Add leader, voters and replicas as a configuration to score, and the constraints."""
    ask(parser, "instance")
    text = {"leader": "the leader", "voters": "all voters", "replicas": "all replicas"}
    names = ("replicas", "voters", "leader")
    ask(parser, "question", required=names, title="configuration", helps=text)
    ask(
        parser, "constraints", required=names, title="constraints to check",
        helps={"leader": "the leader of the configuration"},
    )  # fmt: skip
    ask(parser, "prices", "today", "measures", "tail")


class _Gone(argparse.Action):
    """Refuses an option that is gone; `const` says what took its place."""

    def __call__(self, *given: object) -> None:
        raise InputError(
            "this option is gone", field=self.option_strings[0], expected=str(self.const)
        )


def add_gone(parser: argparse.ArgumentParser, instead: Mapping[str, str]) -> None:
    """Refuse options that are gone with the name of what took their place."""
    for option, place in instead.items():
        parser.add_argument(option, action=_Gone, nargs="?", const=place, help=argparse.SUPPRESS)


def add_work(parser: argparse.ArgumentParser) -> None:
    """Add the limit of the work that a file may ask for."""
    parser.add_argument(
        "--work", type=types.whole(1, 10**15), default=WORK, metavar="STEPS",
        help="most steps for what the file asks for (default 1,000,000,000, two to four minutes); "
        "a plan or certificate that needs more ends with exit code 1",
    )  # fmt: skip


def add_progress(parser: argparse._ActionsContainer) -> None:
    """Add ``--progress``."""
    parser.add_argument(
        "--progress", action=argparse.BooleanOptionalAction, default=None,
        help="show the progress on stderr (default: if stderr is a terminal)",
    )  # fmt: skip


def add_json(parser: argparse._ActionsContainer, *, tables: bool = True) -> None:
    """Add ``--json`` and, for verbs that print `tables`, ``--csv``."""
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--json", action="store_true", help="one JSON document on stdout")
    if tables:
        shape.add_argument("--csv", action="store_true", help="the tables as CSV on stdout")


def add_file(parser: argparse._ActionsContainer, meaning: str) -> None:
    """Add ``--output`` and ``--force``."""
    parser.add_argument("-o", "--output", metavar="FILE", help=meaning)
    parser.add_argument("--force", action="store_true", help="replace existing files")


def add_output(parser: argparse.ArgumentParser, *, plan: bool) -> None:
    """Add ``--json``, ``--csv`` and, for verbs that make a plan, where to write it."""
    group = parser.add_argument_group("output")
    add_json(group)
    if plan:
        add_file(group, "write the plan as JSON")
        add_options(group,
            Switch("--embed", "", "store the instance in the plan file, in place of a "
                "reference to it"),
        )  # fmt: skip


def add_sizes(parser: argparse.ArgumentParser) -> None:
    """Add the question of many numbers of replicas, and its method."""
    ask(parser, "instance", "question", "constraints", "prices", "measures", "tail")
    add_progress(ask(parser, "method"))
    add_gone(parser, GONE)


# --- method ----------------------------------------------------------------------------------


class Limits(TypedDict):
    """Limits of a method, as keyword arguments of :func:`placement.solve`."""

    time_limit: float | None
    gap_limit: float
    seed: int
    threads: int


def limits_from(args: argparse.Namespace) -> Limits:
    """Read the limits, the seed and the threads of the arguments."""
    return Limits(
        time_limit=args.time_limit, gap_limit=args.gap, seed=args.seed, threads=args.threads
    )


def settings_from(args: argparse.Namespace, form: str = "NAME=VALUE") -> dict[str, object]:
    """Read ``--set``; the method checks and converts the values."""
    settings: dict[str, object] = {}
    for text in args.set:
        name, equals, value = text.partition("=")
        parts, dots = name.strip().split(".", form.count(".")), form.count(".")
        if not equals or not all(parts) or len(parts) <= dots:
            raise InputError("not a setting", field="--set", value=text, expected=form)
        if name.strip() in settings:
            raise InputError("set twice", field="--set", value=name.strip(), expected="once")
        settings[name.strip()] = value
    return settings
