"""Time from a change of the question to the drawn answer of the explorer, in Chromium.

    python -m benchmarks run explore                  a minute; needs Chromium and its driver
    python -m benchmarks run explore --write-docs     table of docs/compare-and-sweep.md

Starts `placement explore azure` (48 sites, 44 clients), opens the page without a window at 1,600 by
1,000 pixels, and changes one control after the other: the number of replicas and of voters, a rule
of a site, the demand of a client, the operation mix, the hour of day. Each change waits for its
answer. The page itself measures, from the event of the control until the frame with the plan on
the map is drawn; the search of this time is reported by the server. The 99th percentile and the
panels, which come after the plan, are not part of it.

Writes benchmarks/results/explore.json, one row per change.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

from benchmarks.explore.browser import CHROMIUM, DRIVER, Browser
from benchmarks.harness.machine import hardware
from benchmarks.harness.results import Row, markdown_table, read_json
from benchmarks.harness.study import Study
from benchmarks.live.programs import awaited
from placement.errors import MissingDependencyError

_SET = """
const field = document.getElementById('{field}');
field.value = {value};
field.dispatchEvent(new Event('input', {{bubbles: true}}));
"""
_RULE = """
const mark = document.querySelectorAll('.sites [data-index]')[{value}];
mark.dispatchEvent(new MouseEvent('click', {{bubbles: true}}));
document.querySelector('[data-rule=forbid]').click();
"""
CHANGES = {
    "replicas": (_SET, "replicas", (5, 6, 7, 8, 9)),
    "voters": (_SET, "voters", (5, 3, 4)),
    "forbidden site": (_RULE, "", (3, 11, 19, 27, 35, 43)),
    "demand of a client": (_SET, "factor", (0.5, 2, 3, 5, 1)),
    "operation mix": (_SET, "mix-3", (5, 10, 20, 40)),
    "hour of day": (_SET, "interval", (4, 12, 20, 28, 36, 44)),
}
"""Kind of change -> script, control, and its values in turn."""

_STATE = """
const data = document.documentElement.dataset;
return data.asked === data.drawn && data.milliseconds
  ? [data.milliseconds, document.getElementById('took').textContent,
     document.getElementById('status').textContent] : null;
"""


def _changes(options: argparse.Namespace) -> Iterator[Row]:
    """Yield kind, status, and the milliseconds of answer and search, of changes in turn."""
    if CHROMIUM is None or DRIVER is None:
        raise MissingDependencyError("Chromium and its driver are needed (Debian: chromium-driver)")
    command = [sys.executable, "-m", "placement", "explore", "azure", "--no-open"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        with Browser(1600, 1000) as browser:
            browser.resize(1600, 1000)
            browser.visit(address)
            _answer(browser)
            kinds = list(CHANGES)
            for number in range(options.count):
                kind = kinds[number % len(kinds)]
                script, field, values = CHANGES[kind]
                value = values[number // len(kinds) % len(values)]
                browser.run("delete document.documentElement.dataset.milliseconds;"
                            + script.format(field=field, value=value))  # fmt: skip
                found = _answer(browser)
                amount, unit = found[1].rpartition("search ")[2].split()
                search = float(amount) * (1.0 if unit == "ms" else 1000.0)
                yield {"change": kind, "status": found[2], "ms": float(found[0]),
                       "search_ms": search}  # fmt: skip
                time.sleep(0.2)  # the 99th percentile of the plan before has its turn
    finally:
        server.terminate()
        server.wait(30)


def _answer(browser: Browser) -> Sequence[str]:
    found = awaited(lambda: browser.run(_STATE), bool, 60, 0.01)
    return [str(part) for part in found]


def _report() -> dict[str, str]:
    """Return one line per kind of change, and what they ran on."""
    import pandas as pd

    document, lines = read_json(STUDY.path), []
    found = pd.DataFrame(document["changes"])
    for kind, rows in (*found.groupby("change", sort=False), ("all", found)):
        proven = rows["status"].str.startswith(("optimal", "infeasible")).sum()
        late = rows["ms"].quantile(0.95, interpolation="nearest")
        lines.append(
            (kind, f"{proven} of {len(rows)}", f"{rows['search_ms'].median():.1f}",
             f"{rows['ms'].median():.0f}", f"{late:.0f}", f"{rows['ms'].max():.0f}")
        )  # fmt: skip
    heads = ("change", "proven", "search, ms", "drawn, ms: median", "95th percentile", "worst")
    table = markdown_table(heads, lines)
    return {"explore.json": f"{table}\n\n{hardware([document['machine']])}"}


STUDY = Study(
    "explore",
    {"changes": _changes},
    {"count": 120},
    packages=("numpy",),
    description=__doc__,
    page="docs/compare-and-sweep.md",
    report=_report,
)
