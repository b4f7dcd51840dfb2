"""Self-contained page from a plan or from results, and its figures as pictures.

from placement.report import write_report, save_figures

write_report(plan, "report.html")            # a plan, or the path of a plan or of results
save_figures(plan, "figures", format="svg")  # needs matplotlib
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from placement.support.lazy import lazy_names
from placement.support.work import WORK

if TYPE_CHECKING:
    from placement.model.configuration import Configuration
    from placement.plan import Plan
    from placement.report.page import Source
    from placement.report.result_file import Results

__all__ = ["load_source", "report_html", "save_figures", "write_report"]

__getattr__, __dir__ = lazy_names(__name__)


def load_source(path: str | os.PathLike[str], *, work: int = WORK) -> Source:
    """Read a file that a report can show; see :func:`placement.report.page.load_source`."""
    from placement.report.page import load_source

    return load_source(path, work=work)


def report_html(
    source: Source | str | os.PathLike[str], *, today: Configuration | None = None
) -> str:
    """Return the page of a plan, of results, or of a file that holds one of them.

    Parameters
    ----------
    source
        See :func:`write_report`.
    today
        Configuration that runs today: its bill is shown beside that of the plan.

    Raises
    ------
    InputError
        When the file is neither, and when `today` is given for anything but a plan.
    """
    from placement.report.page import load_source, page_of

    return page_of(load_source(source) if isinstance(source, (str, os.PathLike)) else source, today)


def write_report(
    source: Source | str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    today: Configuration | None = None,
    force: bool = False,
) -> Path:
    """Write the page, whole or not at all.

    Parameters
    ----------
    source
        A plan, or the path of a plan, of benchmark results, or of the JSON of a comparison or
        sweep, or what :func:`load_source` read there.
    path
        Of the HTML file.
    today
        Configuration that runs today: its bill is shown beside that of the plan.
    force
        Replace an existing file.

    Raises
    ------
    InputError
        When the source is none of these, `today` is given for anything but a plan, or the file
        exists and `force` is false.
    """
    from placement.io.formats.files import check_file, write_file

    check_file(path, force=force)
    return write_file(path, report_html(source, today=today).encode(), force=force)


def save_figures(
    source: Plan | Results,
    folder: str | os.PathLike[str],
    *,
    format: str = "png",
    force: bool = False,
) -> tuple[Path, ...]:
    """Write every figure of a plan or of results into a folder.

    Parameters
    ----------
    source
        A plan, or benchmark results.
    folder
        Created when absent, its parent must exist.
    format
        "png" (150 dots per inch) or "svg".
    force
        Replace existing files.

    Returns
    -------
    tuple of Path
        The files, in the order of the page.

    Raises
    ------
    InputError
        For another format, or a file that exists.
    MissingDependencyError
        Without matplotlib.
    """
    from placement.errors import InputError
    from placement.io.formats.files import check_file
    from placement.report.page import sections_of
    from placement.report.plots import pictures_of, save_figure

    if format not in ("png", "svg"):
        raise InputError(
            "unknown format of figures", field="format", value=format, expected="'png' or 'svg'"
        )
    here = Path(folder)
    made = pictures_of(sections_of(source))
    here.mkdir(exist_ok=True)
    paths = {name: here / f"{name}.{format}" for name in made}
    for path in paths.values():
        check_file(path, force=force)
    return tuple(save_figure(made[name], path, force=force) for name, path in paths.items())
