"""The options that ask for measures: a percentile, what is minimised, limits that are kept."""

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

__all__ = [
    "add_distributions",
    "add_measures",
    "add_percentile",
    "apply_measures",
    "distributions_from",
]

_NEEDS = "--distributions FILE, or --spread V where only means are known"


def add_measures(parser: argparse.ArgumentParser) -> None:
    """Add what is minimised and what is kept, beside the options of :func:`add_percentile`."""
    group = parser.add_argument_group("measures (cost, p99(writes), within 100 ms, …)")
    group.add_argument(
        "--minimise",
        type=types.text,
        metavar="MEASURE",
        help="measure to minimise (default: mean), for example 'cost' or 'p99(writes)'",
    )
    group.add_argument(
        "--maximise",
        type=types.text,
        metavar="SHARE",
        help="share in time to maximise, for example 'within 100 ms'",
    )
    group.add_argument(
        "--keep",
        action="append",
        type=types.text,
        metavar="LIMIT",
        help="limit on a measure, for example 'p99(writes) <= 150 ms'; may be repeated",
    )
    group.add_argument(
        "--outage",
        action="append",
        default=[],
        metavar="NAME=P",
        help="probability of an outage, for 'mean over outages': NAME is a site, LEVEL:DOMAIN, or "
        "'any LEVEL' for each of a level; may be repeated",
    )
    add_percentile(parser)


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


def apply_measures(problem: Problem, args: argparse.Namespace) -> Problem:
    """Return the problem with the measures that the options ask for, joined with what it asks.

    Raises
    ------
    InputError
        For a text that is no measure or limit, and for options that contradict each other or do
        nothing.
    """
    given = vars(args)
    names = ("minimise", "maximise", "keep")
    asked = {name: given[name] for name in names if given.get(name) is not None}
    if args.percentile is not None:
        if "minimise" in asked:
            raise InputError(
                "one measure is minimised",
                field="--percentile",
                value=args.percentile,
                expected="one of --percentile and --minimise",
            )
        asked["minimise"] = f"p{args.percentile:.12g}"
    if given.get("outage") and not asked:
        raise InputError(
            "does nothing without --minimise or --keep", field="--outage", value=args.outage[0]
        )
    from placement.measures import MeasureKind, read_limit, read_measure

    read = [read_measure(text) for text in given.get("of") or ()]
    read += [read_limit(text).measure for text in asked.get("keep", ())]
    read += [read_measure(asked[name]) for name in names[:2] if name in asked]
    late = [m for m in read if m.kind in {MeasureKind.PERCENTILE, MeasureKind.WITHIN}]
    if not late:
        _refuse_distributions(args)
    elif args.distributions is None and args.spread is None:
        option = "--keep" if "keep" in asked else "--minimise"
        raise InputError(
            "needs the distributions of RTTs",
            field=option if args.percentile is None else "--percentile",
            value=str(late[0]) if args.percentile is None else args.percentile,
            expected=_NEEDS,
        )
    else:
        asked["distributions"] = distributions_from(problem.instance, args)
    moved = [m for m in read if m.kind in {MeasureKind.CHANGES, MeasureKind.COPIED}]
    if moved and problem.current is None:
        if given.get("present") is None:
            raise InputError(
                "changes and copies are counted from the present configuration",
                field="--keep" if "keep" in asked else "--minimise",
                value=str(moved[0]),
                expected="--from PLAN, the configuration that runs today",
            )
        from placement.cli.option_groups.price_options import present_configuration

        asked["current"] = present_configuration(problem.instance, args.present)
    if given.get("outage"):
        asked["outages"] = types.read_named_numbers(args.outage, "--outage", "NAME=P")
    return problem.replace(**asked) if asked else problem


def _refuse_distributions(args: argparse.Namespace) -> None:
    """Refuse options about distributions that nothing reads."""
    for option, value in _given(args).items():
        if value is not None:
            raise InputError(
                "does nothing without --percentile, or a measure such as p99 or within 100 ms",
                field=option,
                value=value,
                expected="none",
            )


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


def distributions_from(instance: Instance, args: argparse.Namespace) -> tuple[Distributions, ...]:
    """Return the distributions of the options, one for each interval whose RTTs vary.

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
    if not instance.varying_rtt:
        return (_distributions(instance, instance, args),)
    return tuple(
        _distributions(instance.at_interval(interval), instance, args)
        for interval in range(len(instance.intervals))
    )


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
