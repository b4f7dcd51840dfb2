"""Self-contained page from a plan or from results, and its figures as pictures.

from placement.report import write_report, save_figures

write_report(plan, "report.html")            # a plan, or the path of a plan or of results
save_figures(plan, "figures", format="svg")  # needs matplotlib
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from placement.lazy import lazy_names

if TYPE_CHECKING:
    from placement.plan import Plan
    from placement.report.result_file import Results

__all__ = ["report_html", "save_figures", "write_report"]

__getattr__, __dir__ = lazy_names(__name__)


def report_html(source: Plan | str | os.PathLike[str]) -> str:
    """Return the page of a plan, or of a file that holds a plan or results.

    Raises
    ------
    InputError
        When the file is neither.
    """
    from placement.plan import Plan
    from placement.report.page import plan_page, report_of

    return plan_page(source) if isinstance(source, Plan) else report_of(source)


def write_report(
    source: Plan | str | os.PathLike[str], path: str | os.PathLike[str], *, force: bool = False
) -> Path:
    """Write the page, whole or not at all.

    Parameters
    ----------
    source
        A plan, or the path of a plan, of benchmark results, or of the JSON of a comparison or
        sweep.
    path
        Of the HTML file.
    force
        Replace an existing file.

    Raises
    ------
    InputError
        When the source is none of these, or the file exists and `force` is false.
    """
    from placement.io.formats.files import check_file, write_file

    check_file(path, force=force)
    return write_file(path, report_html(source).encode(), force=force)


def save_figures(
    source: Plan | Results,
    folder: str | os.PathLike[str],
    *,
    format: str = "png",
    force: bool = False,
) -> tuple[Path, ...]:
    """Write every figure of a plan or of results; see :func:`placement.report.figures.save`."""
    from placement.report.figures import save

    return save(source, folder, format=format, force=force)
