"""Names of a package that are imported when they are first used.

A package that passes on names of its modules costs what all of them cost. With
:func:`lazy_names` it costs nothing until a name is asked for. Its stub ``__init__.pyi``, which type
checkers and editors read, says once which names it has, a line each::

    from package.module import name as name
    other_name = name

and its ``__init__.py`` has::

    __getattr__, __dir__ = lazy_names(__name__)

Modules of the package itself need not be listed: ``package.module`` is imported when it is first
used, and ``dir(package)`` names it, unless `public` says which of them are public.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

_IMPORT = re.compile(r"^from (\S+) import (\w+)( as \w+)?$", re.MULTILINE)
_SAME = re.compile(r"^(\w+) = (\w+)$", re.MULTILINE)


def lazy_names(
    package: str, public: Sequence[str] | None = None
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return the functions ``__getattr__`` and ``__dir__`` of a package, named by ``__name__``.

    ``dir()`` names the modules `public`; None: all of them, and what they imported.
    """
    stub = Path(str(sys.modules[package].__file__)).with_suffix(".pyi")
    text = stub.read_text(encoding="utf-8") if stub.exists() else ""
    found = [one for one in _IMPORT.findall(text) if one[0] != package]
    home = {name: (module, name) for module, name, _ in found}
    homes = {name: home[name] for _, name, public_name in found if public_name}
    homes |= {other: home[name] for other, name in _SAME.findall(text)}

    def get(name: str) -> object:
        if name == "__all__" and homes:
            return [*homes]
        if name in homes:
            module, own = homes[name]
            value: object = getattr(importlib.import_module(module), own)
        else:
            value = _submodule(package, name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        from pkgutil import iter_modules

        loaded = vars(sys.modules[package])
        if public is not None:
            special = [name for name in loaded if name.startswith("__")]
            return sorted({*special, *homes, *public})
        inside = [one.name for one in iter_modules(loaded["__path__"])]
        submodules = [name for name in inside if not name.startswith("_")]
        return sorted({*loaded, *homes, *submodules})

    return get, names


def _submodule(package: str, name: str) -> ModuleType:
    """Import a module of a package; AttributeError when there is none."""
    full = f"{package}.{name}"
    if not name.startswith("_"):
        try:
            return importlib.import_module(full)
        except ModuleNotFoundError as error:
            if error.name != full:
                raise
    raise AttributeError(f"module {package!r} has no attribute {name!r}")
