from placement.report.page import report_html as report_html
from placement.report.page import save_figures as save_figures
from placement.report.page import write_report as write_report
