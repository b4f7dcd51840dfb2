"""``placement explain``: what comes next after the optimum, and how far things may move."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from placement.cli import exit_codes as exits
from placement.cli import options as types
from placement.cli.options import Subparsers, Switch, add_verb
from placement.cli.output import show_result
from placement.errors import InputError, require
from placement.text.text_tables import escape, number_text, table

if TYPE_CHECKING:
    from placement.analysis.data_quality import RttChange
    from placement.analysis.sensitivity import StableRange
    from placement.plan import Plan


def add_parser(verbs: Subparsers) -> None:
    """Add the verb."""
    parser = add_verb(verbs, "explain", run)
    parser.add_argument("plan", help="a plan file that solve wrote (-o)")
    parser.add("",
        Switch("--runner-ups", "N", "number of next best plans (default 5)",
            types.whole(0, 10_000), 5),
        Switch("--clients", "N", "number of heaviest clients to analyse (default 5)",
            types.whole(), 5),
        Switch("--exact", "", "find the exact RTT ranges by further proofs of optimality, in "
            "place of ranges that are certainly safe"),
        Switch("--doubt", "PERCENT", "solve again with the doubtful RTTs between sites PERCENT "
            "lower and higher: asymmetric ones, detours, faster than light, and the pairs of "
            "--pair", types.number(0, 99, above=True)),
        Switch("--pair", "SITE:SITE", "another doubtful pair, such as one that was filled in; "
            "may be repeated", several=True, default=()),
    )  # fmt: skip
    parser.add_output()


def run(args: argparse.Namespace) -> int:
    """Show the next best plans, and how far demand and RTTs may change.

    For a plan file with a proven optimum, compute the next best plans with their distance. Also
    compute how far the demand of the heaviest clients, and the RTTs that matter most, may change
    before another plan is better.
    """
    from placement.analysis.sensitivity import demand_range, next_best_plans, safe_demand_range
    from placement.io.plan_file import load_plan, rows_document

    doubted, expected = args.doubt is not None, "--doubt PERCENT with it"
    require(doubted or not args.pair, "--pair", "no share of doubt given", expected=expected)
    plan = load_plan(args.plan)
    if not plan.found:
        raise InputError("there is no configuration in it", source=args.plan, field="plan")
    heaviest = sorted(plan.client_rows, key=lambda row: -row.operations)[: args.clients]
    clients = [row.client for row in heaviest if row.operations > 0]
    after_losses = plan.problem.objective.kind == "measures"
    words, exact = "no exact ranges are known after losses", after_losses and args.exact
    require(not exact, "--exact", words, expected="safe ones")
    if not after_losses:
        demand = [demand_range(plan, client) for client in clients]
    following = next_best_plans(plan, max(1, args.runner_ups))
    second = following[0] if following else None
    if after_losses:
        demand = [safe_demand_range(plan, second, client) for client in clients]
    ranges = _rtt_ranges(plan, second, clients, exact=args.exact)
    shown = following[: args.runner_ups]
    doubts = None if args.doubt is None else _doubts(plan, args.pair, args.doubt)

    def text() -> str:
        said = _text(plan, shown, demand, ranges, exact=args.exact)
        return said if doubts is None else f"{said}\n\n{_doubts_text(doubts, args.doubt)}"

    show_result(
        args,
        lambda: {
            "plan": _row(plan, plan),
            "claim": plan.claim or None,
            "runner_ups": [_row(plan, other) for other in shown],
            "demand": rows_document(demand),
            "rtt": rows_document(ranges),  # null: there is no end
            "doubts": None if doubts is None else [_change(change) for change in doubts],
        },
        text,
    )
    return exits.FOUND


_MOST_DOUBTS = 20
"""Most pairs of sites that are changed one by one."""


def _doubts(plan: Plan, texts: list[str], percent: float) -> tuple[RttChange, ...]:
    """Change the doubtful pairs, first the pairs that the user gave."""
    from placement.analysis.data_quality import data_quality, effects_of_doubt

    pairs = []
    for text in texts:
        first, colon, second = text.partition(":")
        require(colon, "--pair", "no pair", text, "SITE:SITE")
        pairs.append((first.strip(), second.strip()))
    pairs.extend(data_quality(plan.problem.instance).doubtful)
    return effects_of_doubt(plan, pairs[:_MOST_DOUBTS], off=percent / 100)


def _change(change: RttChange) -> dict[str, object]:
    return {
        "pairs": [list(pair) for pair in change.pairs],
        "factor": change.factor,
        "stays_optimal": change.regret == 0,
        "regret_percent": 100 * change.regret,
        "leader": change.plan.leader,
        "replicas": list(change.plan.replicas),
    }


def _doubts_text(doubts: tuple[RttChange, ...], percent: float) -> str:
    if not doubts:
        return "Doubtful RTTs: none"
    rows = []
    for change in doubts:
        (a, b), many = change.pairs[0], len(change.pairs)
        best = change.plan
        leads = f"{best.leader} leads " if best.leader else ""
        said = f"{leads}{', '.join(best.replicas)}" if change.regret else "stays"
        pair = f"{a} – {b}" if many == 1 else f"all {many} pairs"
        off, worse = f"{100 * (change.factor - 1):+.0f} %", f"{100 * change.regret:.3f} %"
        rows.append([pair, off, worse, escape(said)])
    moved = sum(change.regret > 0 for change in doubts)
    title = f"Doubtful RTTs {percent:g} % off: the optimum moves in {moved} of {len(doubts)} cases"
    head = ["RTT", "change", "plan is worse by", "optimum"]
    return f"{title}\n" + table(head, rows, right=(1, 2), indent="  ")


def _rtt_ranges(
    plan: Plan, second: Plan | None, clients: list[str], *, exact: bool
) -> list[StableRange]:
    """Ranges of the RTTs between heavy clients and their replicas, and from leader to quorum.

    Without a leader, from the nearest replica of the heaviest client to the other voters.
    """
    from placement.analysis.sensitivity import Waiting, rtt_range, safe_rtt_range

    nearest = {row.client: row.nearest for row in plan.client_rows}
    pairs: list[tuple[str, str, Waiting]] = []
    asking = plan.leader or (nearest[clients[0]] if clients else plan.replicas[0])
    for client in clients:
        reached = [nearest[client], *([] if plan.leader is None else [plan.leader])]
        pairs += [(client, site, "client") for site in dict.fromkeys(reached)]
    pairs += [(asking, voter, "site") for voter in plan.voters if voter != asking]
    if exact:
        return [rtt_range(plan, a, b, waiting=waiting) for a, b, waiting in pairs]
    return [safe_rtt_range(plan, second, a, b, waiting=waiting) for a, b, waiting in pairs]


def _row(plan: Plan, other: Plan) -> dict[str, object]:
    from placement.evaluation.score import overhead

    return {
        "leader": other.leader,
        "replicas": list(other.replicas),
        "mean_latency_ms": other.mean_latency,
        "overhead_percent": overhead(other.objective, plan.objective),
    }


def _text(
    plan: Plan,
    following: tuple[Plan, ...],
    demand: list[StableRange],
    ranges: list[StableRange],
    *,
    exact: bool,
) -> str:
    from placement.evaluation.score import overhead

    def changes(other: Plan) -> str:
        gone = [f"−{name}" for name in plan.replicas if name not in other.replicas]
        new = [f"+{name}" for name in other.replicas if name not in plan.replicas]
        return ", ".join([*gone, *new]) or "same replicas"

    def limits(rows: list[StableRange], digits: int) -> list[list[str]]:
        return [
            [
                r.what,
                ("at most " if r.low_is_limit else "") + number_text(r.low, digits),
                number_text(r.value, digits),
                ("at least " if r.high_is_limit else "") + number_text(r.high, digits),
            ]
            for r in rows
        ]

    rows = []
    for other in (plan, *following):
        more = f"{overhead(other.objective, plan.objective):.3f} %"
        told = ["", "the plan"] if other is plan else [more, changes(other)]
        rows.append([str(other.leader or "none"), number_text(other.mean_latency, 3), *told])
    head = ["leader", "mean ms", "overhead", "replicas"]
    best = table(head, rows, right=(1, 2), indent="  ")
    how = "exactly" if exact else "certainly (--exact: the whole range)"
    of_demand = "exactly"
    if plan.problem.objective.kind == "measures":
        how = of_demand = "certainly"
    return "\n\n".join(
        [
            *([f"Plan: {escape(plan.claim)}"] if plan.claim else []),
            "Next best plans, each proven\n" + best,
            f"Demand: the plan stays optimal between these factors, {of_demand}\n"
            + table(["", "low", "now", "high"], limits(demand, 3), right=(1, 2, 3), indent="  "),
            f"RTTs: the plan stays optimal between these, {how}\n"
            + table(["", "low", "now", "high"], limits(ranges, 2), right=(1, 2, 3), indent="  "),
        ]
    )
