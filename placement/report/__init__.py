"""Self-contained page from a plan or from results, and its figures as pictures.

from placement.report import write_report, save_figures

write_report(plan, "report.html")            # a plan, or the path of a plan or of results
save_figures(plan, "figures", format="svg")  # needs matplotlib
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from placement.support.lazy import lazy_names

if TYPE_CHECKING:
    from placement.report.page import load_source as load_source
    from placement.report.page import report_html as report_html
    from placement.report.page import save_figures as save_figures
    from placement.report.page import write_report as write_report

__all__ = ["load_source", "report_html", "save_figures", "write_report"]

__getattr__, __dir__ = lazy_names(__name__, {"placement.report.page": __all__})
