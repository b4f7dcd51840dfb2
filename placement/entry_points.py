"""Entry points of the installed distributions, read without ``importlib.metadata``.

``importlib.metadata`` imports the e-mail and socket modules of the standard library: more time than
the command line needs for everything else that it reads. The files are simple, see
https://packaging.python.org/en/latest/specifications/entry-points/. Where distributions may live
outside plain folders (a zip file, an egg, an importer of its own), ``importlib.metadata`` is asked.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.machinery import PathFinder
from operator import attrgetter
from typing import Any

__all__ = ["EntryPoint", "entry_points"]

_FOLDERS = (".dist-info", ".egg-info")


class EntryPoint:
    """A name in a group, and the object that it stands for.

    Attributes
    ----------
    name
        What users or programs look up.
    value
        ``module`` or ``module:attribute``.
    """

    __slots__ = ("name", "value")

    def __init__(self, name: str, value: str) -> None:
        self.name = name
        self.value = value

    def load(self) -> Any:
        """Import the module and return the object.

        Raises
        ------
        ImportError
            When the module cannot be imported.
        AttributeError
            When it has no such attribute.
        """
        module, _, attributes = self.value.partition("[")[0].partition(":")
        found = import_module(module.strip())
        return attrgetter(attributes.strip())(found) if attributes else found


def entry_points(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group by name, in the order of ``sys.path``.

    Of a distribution that is installed twice, the first counts. Where two distributions register
    one name, the last counts. One pass over the folders of ``sys.path``: keep the answer.
    """
    if _only_folders():
        found = (text for path in sys.path for text in _files_in(path))
        return {entry.name: entry for text in _first_of_each(found) for entry in _read(text, group)}
    from importlib import metadata

    listed = metadata.entry_points(group=group)
    return {entry.name: EntryPoint(entry.name, entry.value) for entry in listed}


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
    """Yield the text of the first file of each distribution, where there is one."""
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
