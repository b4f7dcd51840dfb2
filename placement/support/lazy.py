"""Names of a package that are imported when they are first used.

A package that passes on names of its modules costs what all of them cost. With
:func:`lazy_names` it costs nothing until a name is asked for::

    if TYPE_CHECKING:                      # for type checkers and editors
        from package.module import name as name

    __getattr__, __dir__ = lazy_names(__name__, {"package.module": ("name",)})

Modules of the package itself need not be listed: ``package.module`` is imported when it is first
used, and ``dir(package)`` names it, unless `modules` says which of them are public.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType


def lazy_names(
    package: str,
    homes: Mapping[str, Sequence[str]] | None = None,
    modules: Mapping[str, str] | None = None,
    public: Sequence[str] | None = None,
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return the functions ``__getattr__`` and ``__dir__`` of a package.

    Parameters
    ----------
    package
        The name of the package, ``__name__``.
    homes
        From each module to the names that it defines.
    modules
        From each further name to the module that it stands for, where that is no module of the
        package.
    public
        Modules of the package that ``dir()`` names; None: all of them, and what they imported.
    """
    values = {name: module for module, defined in (homes or {}).items() for name in defined}
    aliases = modules or {}

    def get(name: str) -> object:
        value: object
        if name in values:
            value = vars(importlib.import_module(values[name]))[name]
        elif name in aliases:
            value = importlib.import_module(aliases[name])
        else:
            value = _submodule(package, name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        from pkgutil import iter_modules

        loaded = vars(sys.modules[package])
        if public is not None:
            special = [name for name in loaded if name.startswith("__")]
            return sorted({*special, *values, *aliases, *public})
        found = [module.name for module in iter_modules(loaded["__path__"])]
        submodules = [name for name in found if not name.startswith("_")]
        return sorted({*loaded, *values, *aliases, *submodules})

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
