"""Options about failure domains, and the rules they become."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

from placement.cli import argument_parser as types
from placement.errors import InputError

if TYPE_CHECKING:
    from placement.model.constraints import Diversity, Role
    from placement.model.instance import Instance

__all__ = ["add_diversity", "diversity_from", "kept_diversity_from"]

_RULE = re.compile(r"(?P<where>.+)=(?P<number>\d+)(:(?P<role>voters|replicas))?")


def kept_diversity_from(args: argparse.Namespace, instance: Instance) -> tuple[Diversity, ...]:
    """Return the rules that ``--keep-diversity`` asks for: those that a saved plan obeys."""
    if args.keep_diversity is None:
        return ()
    from placement.feasibility.kept_diversity import kept_diversity
    from placement.io import load_plan

    plan = load_plan(args.keep_diversity)
    if not plan.found:
        raise InputError(
            "a plan without a configuration",
            source=args.keep_diversity,
            field="--keep-diversity",
            expected="the plan that runs today",
        )
    try:
        return kept_diversity(instance, plan.voters, plan.replicas)
    except InputError as error:
        raise error.at(args.keep_diversity) from None


def add_diversity(group: argparse._ArgumentGroup) -> None:
    """Add ``--cap``, ``--distinct`` and ``--require``, which :func:`diversity_from` reads."""
    group.add_argument(
        "--cap",
        action="append",
        default=[],
        metavar="LEVEL=K[:replicas]",
        help="at most K voters (replicas) per domain of a level",
    )
    group.add_argument(
        "--distinct",
        action="append",
        default=[],
        metavar="LEVEL=K[:replicas]",
        help="voters (replicas) in at least K domains of a level",
    )
    group.add_argument(
        "--require",
        action="append",
        default=[],
        metavar="LEVEL:DOMAIN=K[:voters]",
        help="at least K replicas (voters) in a named domain, for example continent:EU=1",
    )


def diversity_from(args: argparse.Namespace) -> tuple[Diversity, ...]:
    """Read ``--cap``, ``--distinct`` and ``--require``."""
    from placement.model.constraints import Diversity

    rules = []
    for text in args.cap:
        level, most, role = _rule("--cap", text, "LEVEL=K or LEVEL=K:replicas")
        rules.append(Diversity(level, role=role or "voters", cap=most))
    for text in args.distinct:
        level, least, role = _rule("--distinct", text, "LEVEL=K or LEVEL=K:replicas")
        rules.append(Diversity(level, role=role or "voters", min_domains=least))
    for text in args.require:
        expected = "LEVEL:DOMAIN=K or LEVEL:DOMAIN=K:voters"
        where, least, role = _rule("--require", text, expected)
        level, _, domain = where.partition(":")
        if not (level and domain):
            raise InputError("not a rule", field="--require", value=text, expected=expected)
        rules.append(Diversity(level, role=role or "replicas", domain=domain, least=least))
    return tuple(rules)


def _rule(option: str, text: str, expected: str) -> tuple[str, int, Role | None]:
    """Return the place, the number and the role of a rule ``PLACE=K`` or ``PLACE=K:ROLE``."""
    found = _RULE.fullmatch(text)
    if found is None:
        raise InputError("not a rule", field=option, value=text, expected=expected)
    number = types.read_whole(found["number"], option, 0, types.LARGEST_SIZE)
    roles: dict[str, Role] = {"voters": "voters", "replicas": "replicas"}
    return found["where"], number, roles.get(found["role"] or "")
