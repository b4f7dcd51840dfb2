"""Objects that distributions register by name: methods, databases, objectives, verbs, explainers.

A distribution registers an object as an entry point of a group, see :class:`Group`. Nothing is
imported before an object is asked for by its name.

Entry points are read without ``importlib.metadata``.

``importlib.metadata`` imports the e-mail and socket modules of the standard library: more time than
the command line needs for everything else that it reads. The files are simple, see
https://packaging.python.org/en/latest/specifications/entry-points/. Where distributions may live
outside plain folders (a zip file, an egg, a special importer), ``importlib.metadata`` is asked.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from importlib import import_module
from importlib.machinery import PathFinder
from operator import attrgetter
from pkgutil import iter_modules
from typing import Any, Generic, TypeVar

from placement.errors import InputError, UnsupportedError, nearest

_T = TypeVar("_T")

_FOLDERS = (".dist-info", ".egg-info")

_HOMES = {
    "placement.databases": ("placement.databases.systems", "SYSTEM"),
    "placement.feeds": ("placement.io.feeds.readers", "FEED"),
    "placement.methods": ("heuristics.rules", "METHOD"),
}
"""Groups in which each module of a package is an object: package, and its name in the module."""


class EntryPoint:
    """A name in a group; its value, ``module`` or ``module:attribute``, names the object."""

    __slots__ = ("name", "value")

    def __init__(self, name: str, value: str) -> None:
        self.name = name
        self.value = value

    def load(self) -> Any:
        """Import the module and return the object."""
        module, _, attributes = self.value.partition("[")[0].partition(":")
        found = import_module(module.strip())
        return attrgetter(attributes.strip())(found) if attributes else found


class Group(Generic[_T]):
    """Objects of one kind, registered by any installed distribution.

    A name with a dot, ``NAME.PART``, is a part of the object NAME and no separate object.
    Distributions that are installed while the process runs are not seen. For messages `noun` and
    `expected` name the kind ("method", "a placement.Method"); `check` returns an object if it is of
    the kind, else None.
    """

    def __init__(
        self, group: str, noun: str, check: Callable[[object], _T | None], expected: str
    ) -> None:
        self.group = group
        self.noun = noun
        self._check = check
        self._expected = expected

    @cached_property
    def entries(self) -> Mapping[str, EntryPoint]:
        """The entry points by name, parts included. Reading them takes about a millisecond."""
        return entry_points(self.group)

    def names(self) -> tuple[str, ...]:
        """Return the names of all objects, sorted; import none of them."""
        return tuple(sorted(name for name in self.entries if "." not in name))

    def load(self, name: str) -> _T:
        """Return the object registered under a name; the closest name is told where there is none.

        UnsupportedError when the object cannot be imported, or is of another kind.
        """
        entry = self.entries.get(name)
        if entry is None:
            names = self.names()
            hint = f"one of {', '.join(names)}{nearest(name, names)}"
            raise InputError(f"unknown {self.noun}", field=self.noun, value=name, expected=hint)
        try:
            loaded = entry.load()
        except (ImportError, AttributeError) as error:
            raise UnsupportedError(
                f"{self.noun} {name!r} ({entry.value}) cannot be imported: {error}"
            ) from error
        found = self._check(loaded)
        if found is None:
            raise UnsupportedError(
                f"{self.noun} {name!r} ({entry.value}) is a {type(loaded).__name__}, "
                f"not {self._expected}"
            )
        return found


def entry_points(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group by name, in the order of ``sys.path``.

    Of a distribution that is installed twice, the first counts. Where two distributions register
    one name, the last counts; the modules of this package's own home of the group come before all.
    One pass over the folders of ``sys.path``: keep the answer.
    """
    if _only_folders():
        found = (text for path in sys.path for text in _files_in(path))
        named = {
            entry.name: entry for text in _first_of_each(found) for entry in _read(text, group)
        }
    else:
        from importlib import metadata

        listed = metadata.entry_points(group=group)
        named = {entry.name: EntryPoint(entry.name, entry.value) for entry in listed}
    return named | {entry.name: entry for entry in _modules_at_home(group)}


def _modules_at_home(group: str) -> Iterator[EntryPoint]:
    """Yield the objects of a group that are modules of a package, which are not imported."""
    package, attribute = _HOMES.get(group, ("", ""))
    if package:
        for module in iter_modules(import_module(package).__path__):
            name = module.name.replace("_", "-")
            yield EntryPoint(name, f"{package}.{module.name}:{attribute}")


def _only_folders() -> bool:
    """Return whether every distribution lies in a folder of ``sys.path``."""
    if any(path.endswith(".egg") or os.path.isfile(path) for path in sys.path):
        return False
    others = (finder for finder in sys.meta_path if finder is not PathFinder)
    return not any(hasattr(finder, "find_distributions") for finder in others)


def _files_in(path: str) -> Iterator[tuple[str, str]]:
    """Yield the name of each distribution in a folder, and the path of its entry points."""
    try:
        names = os.listdir(path or ".")
    except OSError:
        return
    for name in names:
        if name.endswith(_FOLDERS):
            distribution = name.rpartition(".")[0].partition("-")[0]
            yield (
                re.sub(r"[-_.]+", "_", distribution).lower(),
                os.path.join(path, name, "entry_points.txt"),
            )


def _first_of_each(found: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield the text of the first file of each distribution that has one."""
    seen = set()
    for distribution, path in found:
        if distribution in seen:
            continue
        seen.add(distribution)
        try:
            with open(path, encoding="utf-8") as file:
                yield file.read()
        except OSError:
            continue


def _read(text: str, group: str) -> Iterator[EntryPoint]:
    """Yield the entry points of a group in the text of a file."""
    if f"[{group}]" not in text:
        return
    section = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1].strip()
        elif section == group and "=" in line and not line.startswith(("#", ";")):
            name, _, value = line.partition("=")
            yield EntryPoint(name.strip(), value.strip())
