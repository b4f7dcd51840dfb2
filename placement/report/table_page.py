"""The sections of pages of tables: comparisons, sweeps and frontiers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from placement.io.formats.document import Document
from placement.report.charts.html_tables import TableRow, data_table, duration, percent, section
from placement.report.charts.markup import Child, Markup, tag
from placement.report.charts.svg_charts import Bar, Dots, Series, bars, dots, lines
from placement.support.status import OPTIMALITY_TOLERANCE

_Read: TypeAlias = Callable[[Document, str], object]


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
    def _kind(self) -> tuple[str, Callable[[PlanTable], list[Child]], Mapping[str, _Read]]:
        given = self.rows[0] if self.rows and not self.columns else {"method": ""}
        if "change" in given:
            return "Latency against cost", _frontier, {}
        if "protocol" in given:
            return "Protocols compared", _protocols, {"protocol": Document.text}
        if self.columns:
            return "Methods compared", _figures, {}
        if "method" in given:
            return "Methods compared", _methods_compared, {"method": Document.text}
        return "How many replicas", _sweep, dict.fromkeys(("replicas", "voters"), Document.whole)

    def check(self, source: str, place: str) -> None:
        """Refuse rows of a file, a list at a key, without what the page of such rows needs."""
        for number, row in enumerate(self.rows):
            for key, read in self._kind[2].items():
                read(Document(source, f"{place}[{number}]", row), key)

    def sections(self) -> list[Markup]:
        """Return the sections of the page: the question, charts, and the table."""
        title, content, _ = self._kind
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
    latency, times = [], []
    for row in found:
        name, mean, spent = str(row["method"]), _number(row["mean_latency"]), row.get("seconds")
        said = f"{mean:,.2f} ms, gap {percent(_number(row.get('gap')))}"
        role = "plan" if row.get("status") == "optimal" else "client"
        latency.append(Bar(name, mean, said, role))
        times.append(Bar(name, _number(spent), duration(_number(spent)), "voter"))
    rest = [row for row in table.rows if row not in found]
    latency += [Bar(str(row["method"]), math.nan, str(row.get("status", ""))) for row in rest]
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
    figures = [Bar(name, v, f"{v:.2f}", "voter") for name, v in drawn if math.isfinite(v)]
    shown = data_table("Methods", _cells(table.rows, columns), digits=3)
    return [bars(figures, caption=header, name="figures"), shown]


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
    by_voters: dict[Any, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_voters.setdefault(row["voters"], []).append(row)

    def drawn(column: str, factor: float = 1.0) -> list[Series]:
        """Return a line for each number of voters; cells without a proof are hollow."""
        found = []
        for voters, mine in by_voters.items():
            points: dict[tuple[float, float], bool] = {}
            for row in mine:
                if math.isfinite(value := _number(row.get(column))):
                    point = _number(row["replicas"]), factor * _rounded(column, value)
                    points[point] = row.get("status") == "optimal"
            bare = frozenset(point for point, proven in points.items() if not proven)
            name = f"{voters} voter{'' if float(voters) == 1 else 's'}"
            name += " (hollow: not proven)" if bare else ""
            found.append(Series(name, tuple(points), unproven=bare))
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
