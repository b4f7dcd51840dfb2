"""``placement check``: prove again what a plan claims; score a configuration."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from placement.cli import exit_codes as exits
from placement.cli.dispatch import add_parts
from placement.cli.options import EMBED, PROGRESS, WORK_LIMIT, Subparsers, Switch, add_verb
from placement.cli.output import check_target, progress_of, show_plan, show_result
from placement.cli.problem_options import (
    apply_measures,
    check_present,
    instance_from,
    names,
    problem_from,
)
from placement.errors import CertificateError, require
from placement.support.status import OPTIMALITY_TOLERANCE, Status

if TYPE_CHECKING:
    from placement.plan import Plan
    from placement.proof.certificate_check import CheckResult
    from placement.quorumstore import QuorumPlan


def add_parser(verbs: Subparsers) -> None:
    """Add the verb and its parts."""
    parts = add_parts(verbs, "check")
    parser = add_verb(parts, "plan", _run_plan)
    parser.add_argument(
        "plan", help="a plan file that solve, contingency or fleet wrote (-o, --json)"
    )
    parser.add("", WORK_LIMIT,
        Switch("--again", "", "repeat the search of exact in place of a check of the "
            "certificate: for a plan whose certificate would be too large"),
        PROGRESS,
    )  # fmt: skip
    parser.add_output(tables=False)
    parser = add_verb(parts, "configuration", _run_configuration)
    parser.ask("instance")
    text = {"leader": "the leader", "voters": "all voters", "replicas": "all replicas"}
    parser.ask("question", required=("replicas", "voters", "leader"), title="configuration",
               helps=text)  # fmt: skip
    parser.ask(
        "constraints", required=("leader",), title="constraints to check",
        helps={"leader": "the leader of the configuration"},
    )  # fmt: skip
    parser.ask("prices", "today", "measures", "tail")
    parser.add_output("write the plan as JSON")
    parser.add("output", EMBED)


def _run_plan(args: argparse.Namespace) -> int:
    """Prove a plan's optimality again, from the certificate in its file.

    The proof, that no configuration is better or that there is none, is made in exact integer
    arithmetic and apart from the search. A plan of a quorum store without a certificate is proved
    by bounds on all replica sets. A plan of a fleet (JSON or Parquet) is proved by its prices and
    one pass over its databases. All other numbers and names of the file are recomputed, and a file
    with other values is bad input. Exit code 0: proved; 1: bad input; 2: refused, with the first
    flaw. With --again: 0: the second search finds nothing better, and proves it; 2 otherwise.
    """
    try:
        checked = _check(args)
    except CertificateError as flaw:
        checked = _Checked({"proved": False, "flaw": str(flaw)}, f"refused: {flaw}", holds=False)
    show_result(args, lambda: checked.document, lambda: checked.text)
    return exits.FOUND if checked.holds else exits.INFEASIBLE


@dataclass(frozen=True)
class _Checked:
    """Result of a check: for JSON, in a sentence, and whether the claim holds."""

    document: Mapping[str, object]
    text: str
    holds: bool = True


def _check(args: argparse.Namespace) -> _Checked:
    """Check the file; CertificateError for a certificate that proves nothing."""
    from placement.fleet.fleet_tables import is_fleet_file
    from placement.io.plan_file import load_any_plan
    from placement.plan import Plan
    from placement.proof.certificate_check import check_certificate

    plan = None if is_fleet_file(args.plan) else load_any_plan(args.plan, work=args.work)
    words = "the search is not repeated for the plan of "
    words += "a fleet" if plan is None else "a quorum store"
    again = args.again and not isinstance(plan, Plan)
    require(not again, "--again", words, expected="a plan that solve wrote; or no --again")
    if plan is None:
        return _fleet(args)
    if not isinstance(plan, Plan):
        return _quorum_plan(plan, args.work)
    if args.again:
        return _searched_again(plan, args)
    evaluated = plan.problem.objective.unproven(plan)
    if evaluated is not None:
        return _not_proved(*evaluated)
    try:
        checked = check_certificate(plan, work=args.work)
    except CertificateError as flaw:
        more = "" if plan.certified else "; --again repeats the search"
        raise CertificateError(f"{flaw}{more}") from None
    if plan.found:
        return _proved(plan, checked)
    how = f"the sites that fit were counted for all {checked.leaders} possible leaders"
    if checked.bounds:
        how = f"{checked.leaders} leaders; {_steps(checked.events, checked.bounds)}"
    document = {"proved": True, "status": plan.status.value, "leaders": checked.leaders}
    return _Checked(document, _stated("no configuration obeys all constraints", how))


def _searched_again(plan: Plan, args: argparse.Namespace) -> _Checked:
    """Answer the question of a plan once more, and compare the value and the bound."""
    from placement.io.formats.document import finite
    from placement.methods.registry import solve

    problem, objective = plan.problem, plan.problem.objective
    with progress_of(args, problem) as line:
        second = solve(problem, "exact", settings={"certificate": False}, progress=line)
    close, unit = 1 - OPTIMALITY_TOLERANCE, objective.unit(problem)
    holds = second.status is Status.INFEASIBLE and not plan.found
    if plan.found and second.status is Status.OPTIMAL:
        holds = plan.objective * close <= second.bound
    document: dict[str, object] = {
        "searched_again": True, "holds": holds, "method": second.method,
        "bound": finite(second.bound), "score": plan.objective if plan.found else None,
    }  # fmt: skip
    if not holds:
        flaw = f"the second search ended with: {second.status.value}"
        if plan.found and second.found and second.objective < plan.objective * close:
            better, mine = (objective.in_ms(problem, x.objective) for x in (second, plan))
            flaw = f"a second search finds {better:.6f} {unit}; this plan has {mine:.6f} {unit}"
        return _Checked({**document, "flaw": flaw}, f"not proved: {flaw}", holds=False)
    what = "no configuration obeys all constraints"
    if plan.found:
        value = objective.headline(problem).lower() or "mean latency"
        least, mine = (objective.in_ms(problem, x) for x in (second.bound, plan.objective))
        what = f"no configuration has a {value} below {least:.6f} {unit}; this plan has "
        what += f"{mine:.6f} {unit}"
    how = f"by {second.method} in {second.seconds:.3g} s; a certificate would be checked apart from"
    return _Checked(document, f"searched again: {what}\n        ({how} the search)")


def _fleet(args: argparse.Namespace) -> _Checked:
    """Prove the bound of a fleet again, and every limit of its plan."""
    from placement.io.fleet_plan_file import check_fleet_file

    checked = check_fleet_file(args.plan, work=args.work)
    found, planned = math.isfinite(checked.bound), not math.isnan(checked.value)
    if not planned and checked.bound == -math.inf:
        held = f"the file holds the question of {checked.databases:,} databases and no plan"
        return _not_proved(held, "the search found nothing and proved nothing")
    document = {
        "proved": True,
        "status": "feasible" if planned else "unknown" if found else "infeasible",
        "bound": checked.bound if found else None,
        "value": checked.value if planned else None,
        "gap": checked.gap if planned else None,
        "databases": checked.databases,
        "limits": checked.rows,
        "events": checked.events,
        "bounds": checked.bounds,
        "oversize": list(checked.unplaced),
    }
    what = "no plan of the fleet is within all limits"
    if checked.unplaced:
        what = f"{checked.unplaced[0]} fits no sites, even alone"
    if found:
        what = f"no plan of the fleet is below {checked.bound:,.6g} ms·operations; "
        gap = f"this plan has {checked.value:,.6g}, a gap of {100 * checked.gap:.3g} %"
        what += gap if planned else "the search found none"
    if checked.whole_bound > checked.bound:
        what += (
            f"; the file says that none is below {checked.whole_bound:,.6g}, by an integer program "
            "over all configurations, which is not run again"
        )
    how = f"{checked.databases:,} databases and {checked.rows:,} shared limits; "
    return _Checked(document, _stated(what, how + _steps(checked.events, checked.bounds)))


def _stated(what: str, how: str) -> str:
    """Return a proven statement, and how it was proven."""
    return f"proved: {what}\n        ({how})"


def _steps(events: int, bounds: int) -> str:
    return f"{events:,} steps and {bounds:,} bounds computed again in exact integers"


def _proved(plan: Plan, checked: CheckResult) -> _Checked:
    """State the proved bound of the plan."""
    problem, objective = plan.problem, plan.problem.objective
    value = objective.headline(problem).lower() or "mean latency"
    added = ["the weighed cost"] if problem.cost_weight else []
    if problem.moves is not None and problem.moves.priced:
        added.append("the price of the move")
    if added:
        value = f"sum of {value} and {' and '.join(added)}"
    normal, words, unit = checked.normal_bound, objective.describe(), objective.unit(problem)
    document = {
        "proved": True,
        "bound": checked.bound,
        "score": checked.score,
        "mean_latency_ms": plan.mean_latency,
        "leaders": checked.leaders,
        "events": checked.events,
        "bounds": checked.bounds,
        **({"objective": words} if words else {}),
        **({} if normal is None else {"normal_bound": normal}),
    }
    least, mine = (objective.in_ms(problem, x) for x in (checked.bound, checked.score))
    among = f" ({words})" if words and not words.lower().startswith(value) else ""
    what = f"no configuration has a {value} below {least:.6f} {unit}{among}; this plan has "
    what += f"{mine:.6f} {unit}"
    if normal is not None:
        what += (
            "\n        no equally good configuration has a normal mean latency below "
            f"{normal / problem.demand.operations:.6f} ms; this plan has {plan.mean_latency:.6f} ms"
        )
    leaders = "one proof for all leaders" if checked.leaders == 1 else f"{checked.leaders} leaders"
    return _Checked(document, _stated(what, f"{leaders}; {_steps(checked.events, checked.bounds)}"))


def _quorum_plan(plan: QuorumPlan, work: int) -> _Checked:
    """Account for every replica set of a quorum store, by its certificate or the evaluator."""
    from placement.io.formats.document import finite
    from placement.quorumstore.refutation_tree import prove_bound, replay

    held = "value, thresholds and losses of the file are those of the configuration"
    if plan.status not in (Status.OPTIMAL, Status.INFEASIBLE):
        return _not_proved(held, f"the file claims no proof: its status is {plan.status.value}")
    bound = plan.bound if plan.status is Status.OPTIMAL else math.inf
    if plan.certificate is None:
        proof = prove_bound(plan.problem, bound, work=work)
    else:
        proof = replay(plan.problem, bound, plan.certificate, work=work)
    below = bound * (1 - OPTIMALITY_TOLERANCE) if math.isfinite(bound) else bound
    if proof.least < below:
        flaw = f"a configuration has the value {proof.least:.6f}, below the bound {bound:.6f}"
        return _not_proved(held, flaw)
    counts = {key: value for key, value in asdict(proof).items() if key != "least"}
    document = {"proved": True, "status": plan.status.value, "bound": finite(bound), **counts}
    what = "no configuration obeys all rules and limits"
    if plan.status is Status.OPTIMAL:
        what = f"no configuration has a value below {bound:.6f}; this plan has {plan.value:.6f}"
    steps = f"; {proof.bounds:,} bounds of the certificate computed again" if plan.certified else ""
    how = (
        f"{proof.sets:,} replica sets with quorums: {proof.by_rules:,} break the rules, "
        f"{proof.by_normal:,} are beyond the limits in normal operation, {proof.by_losses:,} after "
        f"a loss, {proof.evaluated:,} were evaluated with all losses{steps}"
    )
    return _Checked(document, _stated(what, how))


def _not_proved(held: str, flaw: str) -> _Checked:
    """Return the result without a certificate: only the plan itself was recomputed."""
    document = {"proved": False, "flaw": flaw, "evaluated": held}
    return _Checked(document, f"checked: {held}\nnot proved: {flaw}", holds=False)


def _run_configuration(args: argparse.Namespace) -> int:
    """Compute the latency of a configuration of your own, and check it against constraints."""
    from placement.api import evaluate

    check_target(args)
    instance = instance_from(args)
    known = instance.sites
    problem = apply_measures(problem_from(args, instance, configuration=True), args)
    check_present(problem, args)
    replicas, voters = names(args.replicas, known), names(args.voters, known)
    plan = evaluate(problem, leader=args.leader, voters=voters, replicas=replicas)
    return show_plan(plan, args)
