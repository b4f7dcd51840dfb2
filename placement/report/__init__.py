"""Self-contained page from a plan or from a table of plans, and its figures as pictures.

from placement.report import write_report, save_figures

write_report(plan, "report.html")            # a plan, or the path of a plan or of a table
save_figures(plan, "figures", format="svg")  # "png" needs the extra plot
"""

from placement.support.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
