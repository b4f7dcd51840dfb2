"""The verbs of the command line, found through the entry-point group ``placement.verbs``.

An entry point names a module with ``add_parser(verbs)`` and ``run(args) -> exit code``, see
:class:`placement.cli.argument_parser.Verb`. Its name is the verb; a name with a dot,
``contingency.quorum``, is a part of the verb before the dot. So a verb lives in the package that
answers it, also in a separate distribution, and this package names none of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from placement.cli.argument_parser import Subparsers, Verb
from placement.cli.page import print_label
from placement.errors import UnsupportedError
from placement.support.entry_points import Group
from placement.text import escape

__all__ = ["VERBS", "add_parts", "add_verbs"]

_ORDER = (
    "solve",
    "evaluate",
    "compare",
    "sweep",
    "contingency",
    "replay",
    "watch",
    "online",
    "check",
    "sensitivity",
    "deployment",
    "export",
    "report",
    "show",
    "datasets",
    "import",
    "methods",
)
"""The order of the help. Verbs that are not named here come after these, by name."""


VERBS = Group(
    "placement.verbs",
    "verb",
    lambda found: found if isinstance(found, Verb) else None,
    "a module with add_parser and run",
)
"""All registered verbs, parts of verbs included."""


def _in_order(names: Iterable[str]) -> list[str]:
    """Return verbs in the order of the help."""
    rank = {name: place for place, name in enumerate(_ORDER)}
    return sorted(names, key=lambda name: (rank.get(name, len(rank)), name))


def add_verbs(verbs: Subparsers, arguments: Sequence[str]) -> None:
    """Add the verb that the arguments ask for; all verbs where they name none.

    Only one verb is imported for a call that names one. A verb that cannot be imported is reported
    on stderr and left out, unless it is the one that is asked for.

    Raises
    ------
    UnsupportedError
        When the verb that is asked for cannot be imported.
    """
    wanted = next((text for text in arguments if not text.startswith("-")), None)
    if wanted is not None and wanted in VERBS.names():
        VERBS.load(wanted).add_parser(verbs)
        return
    _add_all(verbs, VERBS.names())


def add_parts(parts: Subparsers, verb: str) -> None:
    """Add the parts of a verb that entry points with the name ``VERB.PART`` bring."""
    _add_all(parts, [name for name in VERBS.entries if name.startswith(verb + ".")])


def _add_all(parsers: Subparsers, names: Iterable[str]) -> None:
    for name in _in_order(names):
        try:
            verb = VERBS.load(name)
        except UnsupportedError as error:
            print_label("warning", escape(str(error)))
            continue
        verb.add_parser(parsers)
