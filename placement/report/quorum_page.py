"""The sections of the page of a plan of a quorum store."""

from __future__ import annotations

from placement.quorumstore.plan import QuorumPlan
from placement.report.charts.html_tables import data_table, facts, reasons, section, value_table
from placement.report.charts.markup import Markup
from placement.support.status import Status
from placement.text.plans import thresholds_table


def quorum_sections(plan: QuorumPlan) -> list[Markup]:
    """Return the sections: the configuration, every loss, every site with requests."""
    proven = plan.status in (Status.OPTIMAL, Status.INFEASIBLE)
    bare = "no certificate" if plan.certificate is None else "with a certificate"
    note = f"proved by {plan.method}; {bare}" if proven else plan.method
    known = ("Status", plan.status.value, note)
    if plan.configuration is None:
        return [section("answer", "No configuration", facts([known]),
                        reasons("Why", plan.reasons))]  # fmt: skip
    model = "worst loss" if plan.problem.rules.contingency else "normal operation"
    quorums = f"{len(plan.replicas)}-{plan.read_quorum}-{plan.write_quorum}"
    answer = section(
        "answer",
        "Configuration",
        facts(
            [
                known,
                ("N-R-W", quorums, "replicas, read quorum, write quorum"),
                (plan.problem.goal.target.value, f"{plan.value:,.2f} ms", model),
                ("Mean latency", f"{plan.mean_latency:,.2f} ms", "in normal operation"),
                ("Worst loss", "+".join(plan.worst.lost) or "none",
                 f"{plan.worst.threshold:,.2f} ms"),
            ]
        ),
        data_table("Replicas", [{"Site": name} for name in plan.replicas]),
    )  # fmt: skip
    sites = data_table(
        "Latency of every site in normal operation",
        [
            {
                "Site": row.site,
                "Reads": row.reads,
                "Writes": row.writes,
                "Read, ms": row.read_latency,
                "Write, ms": row.write_latency,
            }
            for row in plan.per_site
        ],
    )
    return [
        answer,
        section("losses", "Losses", value_table(thresholds_table(plan))),
        section("sites", "Sites with requests", sites),
    ]
