"""The options that ask for a percentile instead of the mean."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from placement.cli import argument_parser as types
from placement.errors import InputError

if TYPE_CHECKING:
    from placement.model.instance import Instance
    from placement.problem import Problem
    from placement.tail.histograms import Family
    from placement.tail.rtt_distributions import Distributions

__all__ = ["add_distributions", "add_percentile", "apply_percentile", "with_distributions"]

_NEEDS = "--distributions FILE, or --spread V where only means are known"


def add_percentile(parser: argparse.ArgumentParser, *, horizon: str = "--horizon") -> None:
    """Add the percentile, and the ways to say how RTTs are distributed.

    Parameters
    ----------
    parser
        Of a command.
    horizon
        Option of the horizon of RTTs, where ``--horizon`` means something else.
    """
    group = parser.add_argument_group("tail latency")
    group.add_argument(
        "--percentile",
        type=types.number(0, 100, above=True),
        metavar="P",
        help="minimise the P-th percentile of all operations instead of their mean (99, 99.9)",
    )
    add_distributions(group, horizon)


def add_distributions(group: argparse._ActionsContainer, horizon: str = "--horizon") -> None:
    """Add the ways to say how RTTs are distributed; parameters as of :func:`add_percentile`."""
    group.add_argument(
        "--distributions",
        metavar="FILE",
        help="distributions of RTTs: src, dst and p10, p50, p99 …, or rtt and count, or rtt",
    )
    group.add_argument(
        "--client-distributions",
        metavar="FILE",
        help="distributions of RTTs from clients to sites, if they are in a separate file",
    )
    group.add_argument(
        "--spread",
        type=types.number(0, 100),
        metavar="V",
        help="instead of --distributions: one family for all pairs, with a standard deviation of "
        "V times the RTT",
    )
    group.add_argument(
        "--family",
        choices=("lognormal", "gamma"),
        help="family of distributions of --spread (default lognormal)",
    )
    group.add_argument(
        "--bin-width",
        type=types.number(above=True),
        metavar="MS",
        help="width of the bins of RTTs (default 1)",
    )
    group.add_argument(
        horizon,
        dest="rtt_horizon",
        type=types.number(above=True),
        metavar="MS",
        help="end of the last bin: longer RTTs count as longer than any limit",
    )
    group.set_defaults(rtt_horizon_option=horizon)


def apply_percentile(problem: Problem, args: argparse.Namespace) -> Problem:
    """Return the problem with the objective that the options ask for.

    Raises
    ------
    InputError
        For options that contradict each other or do nothing.
    """
    if args.percentile is None:
        for option, value in _given(args).items():
            if value is not None:
                raise InputError(
                    "does nothing without --percentile", field=option, value=value, expected="none"
                )
        return problem
    if args.distributions is None and args.spread is None:
        raise InputError(
            "needs the distributions of RTTs",
            field="--percentile",
            value=args.percentile,
            expected=_NEEDS,
        )
    return with_distributions(problem, args, args.percentile)


def _given(args: argparse.Namespace) -> dict[str, object]:
    """Values of the options of :func:`add_distributions` by name."""
    return {
        "--distributions": args.distributions,
        "--client-distributions": args.client_distributions,
        "--spread": args.spread,
        "--family": args.family,
        "--bin-width": args.bin_width,
        args.rtt_horizon_option: args.rtt_horizon,
    }


def with_distributions(problem: Problem, args: argparse.Namespace, percent: float) -> Problem:
    """Return the problem of a percentile with the distributions that the options describe.

    Raises
    ------
    InputError
        For options that contradict each other.
    """
    given = _given(args)
    for first, others in (
        ("--distributions", ("--spread", "--family")),
        ("--spread", ("--client-distributions",)),
    ):
        for other in others:
            if given[first] is not None and given[other] is not None:
                raise InputError(
                    f"does not go with {first}", field=other, value=given[other], expected="one"
                )
    from placement.tail.objective import Percentile

    instance = problem.instance
    if not instance.varying_rtt:
        return problem.replace(
            objective=Percentile(percent, _distributions(instance, instance, args))
        )
    each = [
        _distributions(instance.at_interval(interval), instance, args)
        for interval in range(len(instance.intervals))
    ]
    return problem.replace(objective=Percentile.varying(percent, each))


def _distributions(instance: Instance, whole: Instance, args: argparse.Namespace) -> Distributions:
    """Return the distributions of one interval, on the grid that all intervals share."""
    width = 1.0 if args.bin_width is None else args.bin_width
    if args.distributions is not None:
        if whole.varying_rtt:
            raise InputError(
                "a file has one distribution per pair, but the RTTs vary by interval",
                field="--distributions",
                value=args.distributions,
                expected="--spread, which gives each interval its own distributions",
            )
        from placement.io.rtt_distributions import read_distributions

        return read_distributions(
            args.distributions,
            instance,
            clients=args.client_distributions,
            width=width,
            horizon=args.rtt_horizon,
        )
    from placement.support.checks import number
    from placement.tail.rtt_spread import spread_distributions

    family: Family = "gamma" if args.family == "gamma" else "lognormal"
    return spread_distributions(
        instance,
        number(args.spread, "--spread"),
        whole=whole,
        family=family,
        width=width,
        horizon=args.rtt_horizon,
    )
