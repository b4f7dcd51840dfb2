"""Names of a package that are imported when they are first used.

A package that passes on names of its modules costs what all of them cost. With
:func:`lazy_names` it costs nothing until a name is asked for::

    if TYPE_CHECKING:                      # for type checkers and editors
        from package.module import name as name

    __getattr__, __dir__ = lazy_names(__name__, {"name": "package.module"})
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping


def lazy_names(
    package: str, homes: Mapping[str, str], modules: Mapping[str, str] | None = None
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return the functions ``__getattr__`` and ``__dir__`` of a package.

    Parameters
    ----------
    package
        The name of the package, ``__name__``.
    homes
        From each name to the module that defines it.
    modules
        From each further name to the module that it stands for.
    """
    submodules = modules or {}

    def get(name: str) -> object:
        value: object
        if name in homes:
            value = vars(importlib.import_module(homes[name]))[name]
        elif name in submodules:
            value = importlib.import_module(submodules[name])
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        loaded = vars(sys.modules[package])
        return sorted({*loaded, *homes, *submodules})

    return get, names
