"""The sections of pages of tables: benchmark runs, comparisons, sweeps and frontiers."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from placement.report.charts.html_tables import (
    TableRow,
    data_table,
    duration,
    facts,
    percent,
    reasons,
    section,
)
from placement.report.charts.markup import Child, Markup, tag
from placement.report.charts.svg_charts import Bar, Dots, Series, bars, dots, lines
from placement.report.result_file import (
    Results,
    best_known,
    contradictions,
    families,
    row_gap,
    time_ratio,
)
from placement.support.status import OPTIMALITY_TOLERANCE

_PROVEN = ("optimal", "infeasible")


def results_sections(results: Results) -> list[Markup]:
    """Return the sections of a file of benchmark results."""
    if not results.rows:
        dropped = " Its last line is torn and was left out." if results.dropped else ""
        return [
            section("answer", "No results", tag("p", {"class": "badge unknown"},
                    "The file holds no row yet." + dropped))
        ]  # fmt: skip
    known = best_known(results.rows)
    solved = [row for row in results.rows if row["cell"].get("kind") == "solve"]
    sections = [_overview(results, solved)]
    reference = str(results.runs[-1].get("reference", "")) if results.runs else ""
    sections += [
        _methods(number, title, rows, known, reference)
        for number, (title, rows) in enumerate(families(solved), 1)
    ]
    if solved:
        sections.append(_all_rows(solved, known))
    sections.append(_conditions(results))
    return sections


def _by(rows: Sequence[Mapping[str, Any]], key: Any) -> dict[str, list[Mapping[str, Any]]]:
    groups: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[str(key(row))].append(row)
    return dict(groups)


def _overview(results: Results, solved: Sequence[Mapping[str, Any]]) -> Markup:
    ok = [row for row in solved if row["outcome"] == "ok"]
    wrong = contradictions(results.rows)
    names = sorted({str(run.get("suite", "")) for run in results.runs})
    return section(
        "answer",
        "Overview",
        tag("p", {"class": "badge violating"}, "There are contradictions.") if wrong else None,
        facts(
            [
                ("Suite", ", ".join(names) or "–", str(results.runs[-1].get("purpose", ""))
                 if results.runs else ""),
                ("Cells", f"{len(results.rows):,}", f"{len(ok):,} answered"),
                ("Questions", f"{len({row['group'] for row in solved}):,}",
                 f"{len({row['cell']['method'] for row in solved})} methods"),
                ("Proven", f"{sum(row['status'] in _PROVEN for row in ok):,}",
                 "answers with a proof of their own"),
            ]
        ),
        reasons("Contradictions", wrong),
    )  # fmt: skip


def _methods(
    number: int,
    title: str,
    rows: Sequence[Mapping[str, Any]],
    known: Mapping[str, tuple[float, float]],
    reference: str,
) -> Markup:
    by_method = _by(rows, lambda row: row["cell"]["method"])
    sized = len({row.get("sites") for row in rows if row["outcome"] == "ok"}) > 1
    gaps: list[Series] = []
    times: list[Series] = []
    table: list[TableRow] = []
    for method, mine in by_method.items():
        ok = [row for row in mine if row["outcome"] == "ok"]
        gap = {r["key"]: g for r in ok if (g := row_gap(r, known)) is not None}
        size: defaultdict[int, list[float]] = defaultdict(list)
        time: defaultdict[int, list[float]] = defaultdict(list)
        for row in ok:
            if row["key"] in gap:
                size[row["cell"]["replicas"]].append(100 * _rounded("gap", gap[row["key"]]))
            time[row.get("sites", 0) if sized else row["cell"]["replicas"]].append(
                float(row["seconds"])
            )
        gaps.append(Series(method, _medians(size)))
        times.append(Series(method, _medians(time)))
        seconds = [float(row["seconds"]) for row in ok]
        values = [100 * _rounded("gap", g) for g in gap.values()]
        table.append(
            {
                "Method": method,
                "Cells": float(len(mine)),
                "Answered": float(len(ok)),
                "Proven": float(sum(row["status"] in _PROVEN for row in ok)),
                "Median gap, %": statistics.median(values) if values else None,
                "Worst gap, %": max(values) if values else None,
                "Median time, ms": 1000 * statistics.median(seconds) if seconds else None,
                "Worst time, ms": 1000 * max(seconds) if seconds else None,
                f"Time, × {reference}": time_ratio(rows, method, reference),
            }
        )
    return section(
        f"methods-{number}",
        title,
        lines(gaps, caption="Median gap to the best bound that any method proved",
              x_label="replicas", y_label="gap, %", name=f"gap-{number}"),
        lines(times, caption="Median time", x_label="sites" if sized else "replicas",
              y_label="seconds (logarithmic)", logarithmic=True, name=f"time-{number}"),
        data_table("Methods", table),
    )  # fmt: skip


def _medians(groups: Mapping[int, Sequence[float]]) -> tuple[tuple[float, float], ...]:
    return tuple((float(x), statistics.median(values)) for x, values in sorted(groups.items()))


def _all_rows(
    rows: Sequence[Mapping[str, Any]], known: Mapping[str, tuple[float, float]]
) -> Markup:
    table: list[TableRow] = []
    for row in rows:
        gap = row_gap(row, known) if row["outcome"] == "ok" else None
        table.append(
            {
                "Question": row["group"],
                "Method": row["cell"]["method"],
                "Status": row.get("status", row["outcome"]),
                "Mean latency, ms": row.get("mean_latency_ms"),
                "Gap, %": None if gap is None else 100 * gap,
                "Time, ms": 1000 * row["seconds"] if "seconds" in row else None,
                "Peak memory, MiB": row.get("peak_mb"),
                "Reason": row.get("reason", ""),
            }
        )
    return section("cells", "Every cell", data_table(f"{len(rows):,} cells", table, digits=3))


def _conditions(results: Results) -> Markup:
    parts: list[Child] = []
    for run in results.runs:
        machine = run.get("machine", {})
        versions = machine.get("versions", {}) if isinstance(machine, Mapping) else {}
        listed = ", ".join(f"{name} {number}" for name, number in versions.items())
        parts.append(
            tag(
                "p",
                None,
                f"Run {run.get('id')} of {run.get('started', '?')}, {run.get('jobs', 1)} process"
                f"{'' if run.get('jobs', 1) == 1 else 'es'} at once: {machine.get('cpu', '?')}, "
                f"{machine.get('cores', '?')} cores, {machine.get('system', '')}, "
                f"{machine.get('python', '')}, {listed}; commit {machine.get('commit', '?')}.",
            )
        )
    captions = {
        name: caption for run in results.runs for name, caption in run.get("captions", {}).items()
    }
    if captions:
        parts.append(tag("h3", None, "About the peers"))
        parts.append(
            tag("dl", None, [(tag("dt", None, n), tag("dd", None, c)) for n, c in captions.items()])
        )
    if results.dropped:
        parts.append(tag("p", {"class": "note"}, f"A torn last line of {results.dropped} bytes "
                         "was left out."))  # fmt: skip
    return section("background", "Conditions", parts)


# --- tables of compare and sweep ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PlanTable:
    """Comparison or sweep as it stands in a file: its rows, and the question in words.

    `columns` are the figures of a comparison that brings its own, key and header.
    """

    rows: Sequence[Mapping[str, Any]]
    about: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Title of the page, by the columns of the rows."""
        return self._kind[0]

    @property
    def _kind(self) -> tuple[str, Callable[[PlanTable], list[Child]]]:
        given = self.rows[0] if self.rows and not self.columns else {"method": ""}
        if "change" in given:
            return "Latency against cost", _frontier
        if "protocol" in given:
            return "Protocols compared", _protocols
        if self.columns:
            return "Methods compared", _figures
        return (
            ("Methods compared", _methods_compared)
            if "method" in given
            else ("How many replicas", _sweep)
        )

    def sections(self) -> list[Markup]:
        """Return the sections of the page: the question, charts, and the table."""
        title, content = self._kind
        if not self.rows:
            return [section("answer", "No results", tag("p", {"class": "badge unknown"},
                                                        "The table has no row."))]  # fmt: skip
        asked = tag("p", {"class": "question"}, f"Asked: {self.about}.") if self.about else None
        return [section("answer", title, asked, content(self))]


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else math.nan


def _cells(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> list[TableRow]:
    """Return rows of a table whose columns are heading -> key; a key with % is a share."""

    def cell(row: Mapping[str, Any], key: str) -> str | float | None:
        value = row.get(key.removesuffix("%"))
        if isinstance(value, (int, float)):
            return 100.0 * _rounded("gap", value) if key.endswith("%") else float(value)
        if isinstance(value, (list, tuple)):
            return ", ".join(map(str, value)) or "–"
        return None if value is None else str(value)

    return [{heading: cell(row, key) for heading, key in columns.items()} for row in rows]


def _methods_compared(table: PlanTable) -> list[Child]:
    """Return the charts and the table of :func:`placement.compare`: one row per method."""
    found = sorted(
        (row for row in table.rows if math.isfinite(_number(row.get("mean_latency")))),
        key=lambda row: (_number(row["mean_latency"]), _number(row.get("seconds"))),
    )
    latency = [
        Bar(str(row["method"]), _number(row["mean_latency"]),
            f"{_number(row['mean_latency']):,.2f} ms, gap {percent(_number(row.get('gap')))}",
            "plan" if row.get("status") == "optimal" else "client")
        for row in found
    ]  # fmt: skip
    latency += [
        Bar(str(row["method"]), math.nan, str(row.get("status", "")))
        for row in table.rows
        if row not in found
    ]
    times = [
        Bar(str(row["method"]), _number(row.get("seconds")),
            duration(_number(row.get("seconds"))), "voter")
        for row in found
    ]  # fmt: skip
    # A percentile, or a price in the objective: then gaps are not about the mean.
    other = any(_number(row.get("objective")) != _number(row.get("score")) for row in found)
    columns = {
        "Method": "method", "Status": "status", **({"Objective": "objective"} if other else {}),
        "Mean latency, ms": "mean_latency", "Gap, %": "gap%", "Own gap, %": "own_gap%",
        "Seconds": "seconds", "Leader": "leader", "Replicas": "replicas", "Reason": "reason",
    }  # fmt: skip
    charts: list[Child] = [
        bars(latency, caption="Mean latency, and gap to the best bound: proven optima in blue",
             name="latency"),
        bars(times, caption="Wall time, on a logarithmic scale", name="time", logarithmic=True),
    ]  # fmt: skip
    rows = data_table("Methods", _cells(table.rows, columns), digits=4)
    return [*(charts if found else ()), rows]


def _figures(table: PlanTable) -> list[Child]:
    """Return the bars and the table of a comparison with its own figures (``lab online``)."""
    first, header = next(iter(table.columns.items()))
    drawn = [(str(row.get("method", "")), _number(row.get(first))) for row in table.rows]
    columns = {"Method": "method", "Status": "status"}
    columns |= {head: key for key, head in table.columns.items()}
    return [
        bars(
            [Bar(name, v, f"{v:.2f}", "voter") for name, v in drawn if math.isfinite(v)],
            caption=header,
            name="figures",
        ),
        data_table("Methods", _cells(table.rows, columns), digits=3),
    ]


def _is_valued(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether the objective is not the mean latency."""
    return any(
        _number(row.get("value")) != _number(row.get("mean_latency"))
        for row in rows
        if math.isfinite(_number(row.get("value")))
    )


def _sweep(table: PlanTable) -> list[Child]:
    """Return the curves and the table of :func:`placement.sweep`: replicas and voters."""
    rows, valued = table.rows, _is_valued(table.rows)
    by_voters = _by(rows, lambda row: row["voters"])

    def drawn(column: str, factor: float = 1.0) -> list[Series]:
        """Return a line for each number of voters; cells without a proof are hollow."""
        found = []
        for voters, mine in by_voters.items():
            points = [
                (
                    (_number(row["replicas"]), factor * _rounded(column, _number(row.get(column)))),
                    row.get("status") == "optimal",
                )
                for row in mine
                if math.isfinite(_number(row.get(column)))
            ]
            bare = frozenset(point for point, proven in points if not proven)
            name = f"{voters} voter{'' if float(voters) == 1 else 's'}"
            if bare:
                name += " (hollow: not proven)"
            found.append(Series(name, tuple(point for point, _ in points), unproven=bare))
        return found

    charts = [
        ("value", "Objective of the best plan", "in its unit", "objective"),
        ("mean_latency", "Mean latency of the best plan", "ms", "latency"),
        ("gain", "What one more replica brings", "less" if valued else "ms less", "gain"),
        ("gap", "Gap of each cell", "gap, %", ""),
        ("seconds", "Time of each cell", "seconds (logarithmic)", ""),
    ]
    columns = {
        "Replicas": "replicas", "Voters": "voters", "Status": "status",
        "Mean latency, ms": "mean_latency", **({"Objective": "value"} if valued else {}),
        "Gain" if valued else "Gain, ms": "gain", "Gap, %": "gap%", "Cost": "cost",
        "Seconds": "seconds", "Leader": "leader", "Sites": "replica_sites", "Reason": "reason",
    }  # fmt: skip
    return [
        *(
            lines(drawn(column, 100.0 if column == "gap" else 1.0), caption=caption,
                  x_label="replicas", y_label=unit, name=name, logarithmic=column == "seconds")
            for column, caption, unit, name in charts[0 if valued else 1 :]
        ),
        data_table("Cells", _cells(rows, columns), digits=4),
    ]  # fmt: skip


def _frontier(table: PlanTable) -> list[Child]:
    """Return the staircase of :func:`placement.pareto`, and what changes from point to point."""
    rows, valued = table.rows, _is_valued(table.rows)
    points = tuple((_number(row.get("cost")), _number(row.get("value"))) for row in rows)
    proven = [row.get("status") == "optimal" for row in rows]
    stairs = Series(
        "replicas / voters" + ("" if all(proven) else " (hollow: not proven)"),
        points,
        unproven=frozenset(p for p, known in zip(points, proven, strict=True) if not known),
        labels=tuple(f"{row.get('replicas')}/{row.get('voters')}" for row in rows),
    )
    columns = {
        "Cost per month": "cost", "Mean latency, ms": "mean_latency",
        **({"Objective": "value"} if valued else {}), "Status": "status",
        "Replicas": "replicas", "Voters": "voters", "Leader": "leader",
        "Change from the point before": "change", "Sites": "replica_sites",
    }  # fmt: skip
    return [
        lines([stairs], caption="Least latency for a cost", x_label="cost per month",
              y_label="objective" if valued else "mean latency, ms", name="frontier", steps=True),
        data_table("Points, cheapest first", _cells(rows, columns)),
    ]  # fmt: skip


def _protocols(table: PlanTable) -> list[Child]:
    """Return the dots and the table of :func:`placement.compare_protocols`."""
    series = (
        ("mean_latency", "plan", "all operations"),
        ("reads", "replica", "reads"),
        ("writes", "naive", "writes"),
        ("on_first", "average", "all, on the replicas of the first"),
    )
    drawn = [
        Dots(str(row["protocol"]), tuple((_number(row.get(key)), role, name)
                                         for key, role, name in series))
        for row in table.rows
        if math.isfinite(_number(row.get("mean_latency")))
    ]  # fmt: skip
    columns = {"Protocol": "protocol", "Status": "status"}
    columns |= {f"{name}, ms".capitalize(): key for key, _, name in series}
    columns |= {"Leader": "leader", "Reason": "reason"}
    return [
        dots(drawn, caption="Mean operation latency of each protocol", unit="ms", name="protocols"),
        data_table("Protocols", _cells(table.rows, columns)),
    ]


def _rounded(column: str, value: float) -> float:
    """Call a gap within the tolerance of a proof what it is: none."""
    return 0.0 if column == "gap" and value <= OPTIMALITY_TOLERANCE else value
