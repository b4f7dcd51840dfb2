"""``placement check``: prove again what a plan claims, from the certificate in its file."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING

from placement.cli import dispatch as exits
from placement.cli.argument_parser import Subparsers
from placement.cli.options import add_json, add_progress, add_work
from placement.cli.page import print_page
from placement.cli.plan_output import print_json
from placement.errors import InputError

if TYPE_CHECKING:
    from placement.plan import Plan
    from placement.proof.certificate_check import CheckResult
    from placement.quorumstore import QuorumPlan

__all__ = ["add_parser", "run"]


def add_parser(verbs: Subparsers) -> None:
    """Add the verb."""
    parser = verbs.add_parser(
        "check",
        help="prove a plan's optimality again, from the certificate in its file",
        description="Prove from the certificate that solve wrote into a plan that no configuration "
        "is better, or that there is none, in exact integer arithmetic and apart from the search. "
        "A plan of a quorum store without a certificate is proved by bounds on all replica sets. "
        "A plan of a fleet (JSON or Parquet) is proved by its prices and one pass over its "
        "databases. "
        "All other numbers and names of the file are recomputed, and a file with other values is "
        "bad input. Exit code 0: proved; 1: bad input; 2: refused, with the first flaw. With "
        "--again: 0: the second search finds nothing better, and proves it; 2 otherwise.",
    )
    parser.add_argument(
        "plan", help="a plan file that solve, contingency or fleet wrote (-o, --json)"
    )
    add_work(parser)
    parser.add_argument(
        "--again",
        action="store_true",
        help="repeat the search of exact in place of a check of the certificate: for a plan whose "
        "certificate would be too large",
    )
    add_progress(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Check the certificate and print the proven statement."""
    from placement.errors import CertificateError
    from placement.fleet.fleet_tables import is_fleet_file
    from placement.io.plan_file import load_any_plan
    from placement.plan import Plan
    from placement.proof.certificate_check import check_certificate

    if is_fleet_file(args.plan):
        _only_certificates(args, "a fleet")
        return _fleet(args)
    plan = load_any_plan(args.plan, work=args.work)
    if not isinstance(plan, Plan):
        _only_certificates(args, "a quorum store")
        return _quorum_plan(plan, args)
    if args.again:
        return _searched_again(plan, args)
    evaluated = plan.problem.objective.unproven(plan)
    if evaluated is not None:
        return _not_proved(*evaluated, args)
    try:
        checked = check_certificate(plan, work=args.work)
    except CertificateError as flaw:
        more = "" if plan.certified else "; --again repeats the search"
        return _refused(f"{flaw}{more}", args)
    if not plan.found:
        return _none(plan, checked, args)
    _proved(plan, checked, args)
    return exits.FOUND


def _only_certificates(args: argparse.Namespace, what: str) -> None:
    """Refuse ``--again`` where no search is repeated."""
    if args.again:
        raise InputError(
            f"the search is not repeated for the plan of {what}",
            field="--again",
            expected="a plan that solve or contingency leader wrote; or no --again",
        )


def _searched_again(plan: Plan, args: argparse.Namespace) -> int:
    """Answer the question of a plan once more, and compare the value and the bound."""
    from placement.cli.progress_line import progress_of
    from placement.methods.registry import solve
    from placement.support.status import OPTIMALITY_TOLERANCE, Status

    problem, objective = plan.problem, plan.problem.objective
    with progress_of(args, problem) as line:
        second = solve(problem, "exact", settings={"certificate": False}, progress=line)
    close = 1 - OPTIMALITY_TOLERANCE
    holds = second.status is Status.INFEASIBLE and not plan.found
    if plan.found and second.status is Status.OPTIMAL:
        holds = plan.objective * close <= second.bound
    flaw = "" if holds else f"the second search ended with: {second.status.value}"
    if plan.found and second.found and second.objective < plan.objective * close:
        better = objective.in_ms(problem, second.objective)
        mine = objective.in_ms(problem, plan.objective)
        unit = objective.unit(problem)
        flaw = f"a second search finds {better:.6f} {unit}; this plan has {mine:.6f} {unit}"
    if args.json:
        print_json(
            {
                "searched_again": True,
                "holds": holds,
                "method": second.method,
                "bound": second.bound if math.isfinite(second.bound) else None,
                "score": plan.objective if plan.found else None,
                **({} if holds else {"flaw": flaw}),
            }
        )
    elif not holds:
        print_page(f"not proved: {flaw}")
    else:
        what = "no configuration obeys all constraints"
        if plan.found:
            value = objective.headline(problem).lower() or "mean latency"
            least, mine = (objective.in_ms(problem, x) for x in (second.bound, plan.objective))
            unit = objective.unit(problem)
            what = f"no configuration has a {value} below {least:.6f} {unit}; this plan has "
            what += f"{mine:.6f} {unit}"
        print_page(
            f"searched again: {what}\n        (by {second.method} in {second.seconds:.3g} s; a "
            "certificate would be checked apart from the search)"
        )
    return exits.FOUND if holds else exits.INFEASIBLE


def _fleet(args: argparse.Namespace) -> int:
    """Prove the bound of a fleet again, and every limit of its plan."""
    from placement.errors import CertificateError
    from placement.io.fleet_plan_file import check_fleet_file

    try:
        checked = check_fleet_file(args.plan, work=args.work)
    except CertificateError as flaw:
        return _refused(str(flaw), args)
    found, planned = math.isfinite(checked.bound), not math.isnan(checked.value)
    if not planned and checked.bound == -math.inf:
        held = f"the file holds the question of {checked.databases:,} databases and no plan"
        return _not_proved(held, "the search found nothing and proved nothing", args)
    if args.json:
        print_json(
            {
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
        )
        return exits.FOUND
    what = "no plan of the fleet is within all limits"
    if checked.unplaced:
        what = f"{checked.unplaced[0]} fits no sites, even alone"
    if found:
        what = f"no plan of the fleet is below {checked.bound:,.6g} ms·operations; "
        what += (
            "the search found none"
            if not planned
            else (f"this plan has {checked.value:,.6g}, a gap of {100 * checked.gap:.3g} %")
        )
    print_page(
        f"proved: {what}\n        ({checked.databases:,} databases and {checked.rows:,} shared "
        f"limits; {checked.events:,} steps and {checked.bounds:,} bounds computed again in exact "
        "integers)"
    )
    return exits.FOUND


def _proved(plan: Plan, checked: CheckResult, args: argparse.Namespace) -> None:
    """Return the sentence that states the proved bound of the plan."""
    problem, objective = plan.problem, plan.problem.objective
    value = objective.headline(problem).lower() or "mean latency"
    added = ["the weighed cost"] if problem.cost_weight else []
    if problem.moves is not None and problem.moves.priced:
        added.append("the price of the move")
    if added:
        value = f"sum of {value} and {' and '.join(added)}"
    least = objective.in_ms(problem, checked.bound)
    normal = checked.normal_bound
    if args.json:
        document: dict[str, object] = {
            "proved": True,
            "bound": checked.bound,
            "score": checked.score,
            "mean_latency_ms": plan.mean_latency,
            "leaders": checked.leaders,
            "events": checked.events,
            "bounds": checked.bounds,
        }
        if objective.describe():
            document["objective"] = objective.describe()
        if normal is not None:
            document["normal_bound"] = normal
        print_json(document)
        return
    leaders = "one proof for all leaders" if checked.leaders == 1 else f"{checked.leaders} leaders"
    words, unit = objective.describe(), objective.unit(problem)
    among = f" ({words})" if words and not words.lower().startswith(value) else ""
    print_page(
        f"proved: no configuration has a {value} below {least:.6f} {unit}{among}; this plan has "
        f"{objective.in_ms(problem, checked.score):.6f} {unit}"
    )
    if normal is not None:
        rate = problem.demand.operations
        print_page(
            "        of those that are as good, none has a normal mean latency below "
            f"{normal / rate:.6f} ms; this plan has {plan.mean_latency:.6f} ms"
        )
    print_page(
        f"        ({leaders}; {checked.events} steps and {checked.bounds} bounds computed again in "
        "exact integers)"
    )


def _none(plan: Plan, checked: CheckResult, args: argparse.Namespace) -> int:
    """Say that there is no plan, and how that was shown."""
    if args.json:
        print_json({"proved": True, "status": plan.status.value, "leaders": checked.leaders})
        return exits.FOUND
    how = f"the sites that fit were counted for all {checked.leaders} possible leaders"
    if checked.bounds:
        how = (
            f"{checked.leaders} leaders; {checked.events} steps and {checked.bounds} bounds "
            "computed again in exact integers"
        )
    print_page(f"proved: no configuration obeys all constraints\n        ({how})")
    return exits.FOUND


def _quorum_plan(plan: QuorumPlan, args: argparse.Namespace) -> int:
    """Account for every replica set of a quorum store, by its certificate or the evaluator."""
    from placement.errors import CertificateError
    from placement.quorumstore.refutation_tree import prove_bound, replay
    from placement.support.status import OPTIMALITY_TOLERANCE, Status

    held = "value, thresholds and losses of the file are those of the configuration"
    if plan.status not in (Status.OPTIMAL, Status.INFEASIBLE):
        return _not_proved(
            held, f"the file claims no proof: its status is {plan.status.value}", args
        )
    bound = plan.bound if plan.status is Status.OPTIMAL else math.inf
    try:
        if plan.certificate is None:
            proof = prove_bound(plan.problem, bound, work=args.work)
        else:
            proof = replay(plan.problem, bound, plan.certificate, work=args.work)
    except CertificateError as error:
        return _refused(str(error), args)
    below = bound * (1 - OPTIMALITY_TOLERANCE) if math.isfinite(bound) else bound
    if proof.least < below:
        flaw = f"a configuration has the value {proof.least:.6f}, below the bound {bound:.6f}"
        return _not_proved(held, flaw, args)
    if args.json:
        print_json(
            {
                "proved": True,
                "status": plan.status.value,
                "bound": bound if math.isfinite(bound) else None,
                "sets": proof.sets,
                "by_rules": proof.by_rules,
                "by_normal": proof.by_normal,
                "by_losses": proof.by_losses,
                "evaluated": proof.evaluated,
                "bounds": proof.bounds,
            }
        )
        return exits.FOUND
    what = "no configuration obeys all rules and limits"
    if plan.status is Status.OPTIMAL:
        what = f"no configuration has a value below {bound:.6f}; this plan has {plan.value:.6f}"
    steps = f"; {proof.bounds:,} bounds of the certificate computed again" if plan.certified else ""
    print_page(
        f"proved: {what}\n        ({proof.sets:,} replica sets with quorums: {proof.by_rules:,} "
        f"break the rules, {proof.by_normal:,} are beyond the limits in normal operation, "
        f"{proof.by_losses:,} after a loss, {proof.evaluated:,} were evaluated with all "
        f"losses{steps})"
    )
    return exits.FOUND


def _refused(flaw: str, args: argparse.Namespace) -> int:
    """Return the sentence that states the fault of a certificate."""
    if args.json:
        print_json({"proved": False, "flaw": flaw})
    else:
        print_page(f"refused: {flaw}")
    return exits.INFEASIBLE


def _not_proved(held: str, flaw: str, args: argparse.Namespace) -> int:
    """Return the sentence for a plan without certificate: only the plan itself was recomputed."""
    if args.json:
        print_json({"proved": False, "flaw": flaw, "evaluated": held})
    else:
        print_page(f"checked: {held}\nnot proved: {flaw}")
    return exits.INFEASIBLE
