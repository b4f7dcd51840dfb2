"""The options of a question, and the instance and the problem that they become.

The texts of the options are those of the keys in :mod:`placement.question`.
"""

from __future__ import annotations

import argparse
import dataclasses
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placement.cli import options as types
from placement.errors import Gathered, InputError, refused, require
from placement.question import KEYS, LARGEST_NUMBER, LARGEST_SIZE, Key

if TYPE_CHECKING:
    from placement.evaluation.bill import MonthlyBill
    from placement.evaluation.moves import Moves
    from placement.io.plan_file import Reference
    from placement.io.price_lists import PriceInput, SitePrices, TransferTable
    from placement.model.configuration import Configuration
    from placement.model.constraints import SiteRule
    from placement.model.instance import Instance
    from placement.plan import Plan
    from placement.problem import Problem
    from placement.question import Question
    from placement.tail.histograms import Family
    from placement.tail.rtt_distributions import Distributions

_AWS = "aws"
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")
_MOST = LARGEST_SIZE
_RANGE = re.compile(r"(\d+)\s*\.\.\s*(\d+)")
_COUNTS = re.compile(r"\s*(\d+)\s*(?:\.\.\s*(\d+)\s*)?")
_RULE = re.compile(r"(?P<where>.+)=(?P<number>\d+)(:(?P<role>voters|replicas))?")


# --- instance --------------------------------------------------------------------------------


def instance_from(args: argparse.Namespace) -> Instance:
    """Load the instance of the arguments with the changes of their options."""
    from placement.api import load

    if (tables := _tables(args)) is not None:
        instance = _assembled(tables)
    else:
        instance = load(args.instance, mix=args.mix, seed=args.workload_seed)
    if not _changed(args):
        return instance
    from placement.model.changed_instance import scale_demand, with_waits, without_sites

    given = vars(args)
    if given.get("wait"):
        instance = with_waits(instance, _waits(args.wait))
    factors = types.read_named_numbers(args.scale_demand, "--scale-demand", "CLIENT=F")
    gone = names(args.without, instance.sites)
    try:
        if factors:
            instance = scale_demand(instance, factors)
        if gone:
            instance = without_sites(instance, gone)
    except InputError as error:
        raise error.at("--without" if error.field == "sites" else "--scale-demand") from None
    return _priced(instance, args) if _has_prices(args) else instance


def _tables(args: argparse.Namespace) -> Question | None:
    """Return the question whose file names the tables of the instance; None: another source."""
    question: Question | None = vars(args).get("question")
    if question is None or question.rtt is None or args.instance != question.source:
        return None
    return question


def _assembled(question: Question) -> Instance:
    """Return the instance of the tables that a question file names."""
    from placement.io.assemble_instance import assemble, check_names, read_counts, read_site_table
    from placement.io.feeds.registry import FeedRequest, read_feed

    assert question.rtt is not None
    gathered = Gathered()  # the errors of all files are told at once
    reading = counts = sites = None
    with gathered.part(), gathered.cells():
        reading = read_feed(question.rtt, "auto", FeedRequest())[1].table
    with gathered.part(), gathered.cells():
        if question.demand_table is not None:
            counts = read_counts(question.demand_table)
        elif question.mix is None:
            raise InputError(
                "no demand", source=question.source, field="instance.demand",
                expected='demand = "counts.csv", or mix = "read-heavy"',
            )  # fmt: skip
    with gathered.part():
        sites = None if question.site_table is None else read_site_table(question.site_table)
    with gathered.part():
        check_names(reading, counts, client_rtt=None, sites=sites, operations=())
    gathered.check()
    assert reading is not None  # else there was an error
    return assemble(
        reading, counts=counts, mix=None if counts is not None else question.mix, sites=sites,
        name=Path(question.source).stem,
    )  # fmt: skip


def _changed(args: argparse.Namespace) -> bool:
    given = vars(args)
    changes = (given.get(name) for name in ("scale_demand", "without", "wait"))
    return any(changes) or _has_prices(args)


def _waits(given: Sequence[str]) -> dict[str, list[str]]:
    """Read ``--wait``: the waits of each operation."""
    found: dict[str, list[str]] = {}
    for text in given:
        name, equals, wait = text.partition("=")
        require(equals and name.strip(), "--wait", "not a wait", text, "OPERATION=WAIT")
        found.setdefault(name.strip(), []).append(wait.strip())
    return found


def reference_from(args: argparse.Namespace) -> Reference | None:
    """Return where the instance came from; None for one that the options changed."""
    from placement.io.plan_file import Reference

    if _changed(args) or _tables(args) is not None:
        return None
    return Reference(args.instance, args.mix, args.workload_seed)


# --- prices, and what runs today -------------------------------------------------------------


def _has_prices(args: argparse.Namespace) -> bool:
    keys = (key for key in KEYS.values() if key.group == "prices" and not key.needs)
    return any(getattr(args, key.name, None) not in (None, []) for key in keys)


def _priced(instance: Instance, args: argparse.Namespace) -> Instance:
    """Return the instance with the prices of the options."""
    from placement.io.price_lists import with_prices

    given = _price_input(instance, args)
    if getattr(args, "today", None) is not None:
        here = _today(instance, args)
        sites = tuple(instance.sites[r] for r in here.replicas)
        given = dataclasses.replace(given, present=sites)
    return with_prices(instance, given)


def _price_input(instance: Instance, args: argparse.Namespace) -> PriceInput:
    from placement.io.price_lists import PriceInput

    parts = [part for text in args.gb_per_op for part in text.split(",") if part.strip()]
    return PriceInput(
        sites=None if args.prices is None else _sites(args.prices),
        transfer=None if args.transfer is None else _transfer(args), zones=args.zones,
        client_places={} if args.client_sites is None else _places(instance, args.client_sites),
        gb_per_op=types.read_named_numbers(parts, "--gb-per-op", "OP=GB"),
        written_gb=args.written_gb, interval_hours=args.interval_hours,
        replication=args.replication, stored_gb=args.stored_gb, storage_unit=args.storage_unit,
    )  # fmt: skip


def _sites(text: str) -> SitePrices | float:
    from placement.io.price_lists import read_site_prices

    if not Path(text).exists():
        try:
            return types.read_number(text, "--prices", 0.0, LARGEST_NUMBER)
        except InputError:
            expected = "a file, or one price"
            raise refused("", "--prices", "no such file", text, expected) from None
    return read_site_prices(text)


def _transfer(args: argparse.Namespace) -> TransferTable:
    from placement.io.price_lists import read_transfer

    if args.transfer == _AWS:
        from placement.datasets.bundled import find_aws_transfer

        path, source = find_aws_transfer()
        table = dataclasses.replace(read_transfer(path), source=source, currency="USD")
    else:
        table = read_transfer(args.transfer)
    return table if args.marginal_gb is None else table.at_volume(args.marginal_gb)


def _places(instance: Instance, text: str) -> dict[str, str]:
    from placement.io.formats.column_reader import ColumnTable
    from placement.io.formats.tables import read_table
    from placement.io.price_lists import INTERNET, nearest_sites

    if text == "nearest":
        return nearest_sites(instance)
    if text == INTERNET:
        return dict.fromkeys(instance.clients, INTERNET)
    table = ColumnTable.of(read_table(text))
    return {table.text("client", row): table.text("site", row) for row in range(table.rows)}


def check_present(problem: Problem, args: argparse.Namespace) -> None:
    """Refuse ``--today`` where nothing is compared with it; read its file before the work."""
    given = vars(args).get("given", ())
    limited = problem.moves is not None or vars(args).get("max_moves") is not None
    if args.today is None or limited or "today" not in given:
        return
    billed = problem.instance.prices is not None and not problem.demand.has_waits
    moves = ", or an option of moves such as --max-moves" if "max_moves" in vars(args) else ""
    words = "does nothing without a bill of the plan"
    require(billed, "--today", words, args.today, f"prices (--prices){moves}")
    _today(problem.instance, args)


def present_configuration(
    instance: Instance, path: str, database: str | None = None
) -> Configuration:
    """Return the configuration of a file; see ``placement.databases.deployment.read_present``."""
    from placement.databases.deployment import read_present

    return read_present(instance, path, database=database)


def _today(instance: Instance, args: argparse.Namespace) -> Configuration:
    database = args.database if "database" in vars(args).get("asked", ()) else None
    return present_configuration(instance, args.today, database=database)


def tiered_bill(plan: Plan, path: str) -> MonthlyBill:
    """Return the bill of a plan with the volume tiers of a file.

    A plan without prices, and a sender that is neither a site nor a client, are refused.
    """
    from placement.io.price_lists import read_tiers

    if plan.bill is None:
        raise refused("", "--tiers", "no prices", path, "an instance with prices")
    tiers, instance = read_tiers(path), plan.problem.instance
    for name in tiers:
        if name not in instance.sites and name not in instance.clients:
            expected = "a site or a client of the instance"
            raise refused(path, "from", "unknown sender", name, expected)
    senders = {row.sender for row in plan.bill.rows}
    return plan.bill.with_tiers({name: tiers[name] for name in tiers if name in senders})


# --- constraints -----------------------------------------------------------------------------


def names(values: Iterable[str] | None, known: Sequence[str]) -> tuple[str, ...]:
    """Split lists of names at commas, except a value that is itself a name.

    Examples
    --------
    >>> names(["Paris, Rome", "Washington, DC"], ["Paris", "Rome", "Washington, DC"])
    ('Paris', 'Rome', 'Washington, DC')
    """
    found: list[str] = []
    for value in values or ():
        if value in known:
            found.append(value)
        else:
            found.extend(part.strip() for part in value.split(",") if part.strip())
    return tuple(found)


def count_or_names(
    values: Sequence[str], known: Sequence[str], option: str = "", *, span: bool = True
) -> int | tuple[int, int] | tuple[str, ...]:
    """Read ``5``, ``3..7`` (with `span`) or a list of names; one number with a comma is a list.

    Examples
    --------
    >>> count_or_names(["5"], []), count_or_names(["3..7"], []), count_or_names(["a,b"], [])
    (5, (3, 7), ('a', 'b'))
    """
    if len(values) == 1:
        text = values[0].strip()
        if _NUMBER.fullmatch(text):
            # a fraction goes on as it is: the problem then says what it expects
            if "." in text:
                return types.read_number(text, option, -_MOST, _MOST)  # type: ignore[return-value]  # refused there
            return types.read_whole(text, option, -_MOST, _MOST)
        if found := _RANGE.fullmatch(text):
            words, expected = "a range is not supported here", "a number, or sites by name"
            require(span, option, words, values[0], expected)
            low, high = (types.read_whole(end, option, 0, _MOST) for end in found.groups())
            return low, high
    return names(values, known)


def counts(values: Sequence[str]) -> tuple[int, ...] | None:
    """Read ``3``, ``3..7`` and ``1,3,5``, repeated or mixed; None when something is no number.

    Examples
    --------
    >>> counts(["3..5,8"]), counts(["1", "3"]), counts(["fra"])
    ((3, 4, 5, 8), (1, 3), None)
    """
    found: set[int] = set()
    for part in (part for value in values for part in value.split(",")):
        match = _COUNTS.fullmatch(part)
        if match is None:
            return None
        low, high = (
            types.read_whole(end, "--replicas, --voters", 0, LARGEST_SIZE)
            for end in (match[1], match[2] or match[1])
        )
        found.update(range(low, high + 1))
    return tuple(sorted(found))


def diversity_from(args: argparse.Namespace, instance: Instance) -> tuple[SiteRule, ...]:
    """Read the options of rules, and ``--keep-diversity``."""
    from placement.model.constraints import RULES

    rules: list[SiteRule] = [
        _rule(KEYS[key], kind.of_text, text)
        for kind in RULES.values()
        for key in kind.keys
        for text in vars(args)[key]
    ]
    if (path := vars(args).get("keep_diversity")) is not None:
        from placement.feasibility.feasible_plans import kept_diversity

        here = present_configuration(instance, path)
        roles = ([instance.sites[s] for s in some] for some in (here.voters, here.replicas))
        rules += kept_diversity(instance, *roles)
    return tuple(rules)


def _rule(key: Key, made: Callable[..., SiteRule | None], text: str) -> SiteRule:
    """Return the rule of a text ``PLACE=K`` or ``PLACE=K:ROLE``."""
    if (found := _RULE.fullmatch(text)) is not None:
        number = types.read_whole(found["number"], key.option, 0, LARGEST_SIZE)
        rule = made(key.name, found["where"], number, found["role"])
        if rule is not None:
            return rule
    expected = key.metavar.replace("[", f" or {key.metavar.partition('[')[0]}").rstrip("]")
    raise refused("", key.option, "not a rule", text, expected)


def problem_from(
    args: argparse.Namespace, instance: Instance, *, configuration: bool = False
) -> Problem:
    """Build the constraints of the question from its options.

    Leader, voters and replicas may be a `configuration` to hold against the question: then only
    their numbers are part of it.
    """
    from placement.problem import Problem

    values: dict[str, Any] = {}
    for key in (key for key in KEYS.values() if key.field):
        given = getattr(args, key.name)
        if given in (None, []):
            continue  # the default of Problem
        by_name = configuration and key.name in ("replicas", "voters")
        if key.kind == "names" or by_name:
            given = names(given, instance.sites)
        elif key.kind == "size":
            span = key.name == "replicas"
            given = count_or_names(given, instance.sites, key.option, span=span)
        values[key.field] = len(given) if by_name else given
    without_vote = []
    for one in args.votes:
        site, _, votes = one.rpartition("=")
        words = "sites vote once or not at all"
        expected = "SITE=0 for a site without a vote, and no option for the others"
        require(site.strip() and votes.strip() == "0", "--votes", words, one, expected)
        without_vote.append(site.strip())
    values["non_voters"] = (*values.get("non_voters", ()), *without_vote)
    values |= {"leader": None} if configuration else {}
    return Problem(instance, **values, diversity=diversity_from(args, instance))


def question_from(args: argparse.Namespace, instance: Instance) -> Problem:
    """Return the problem that all options describe: constraints, moves and measures."""
    problem = problem_from(args, instance)
    moves = read_moves(args) if "max_moves" in vars(args) else None
    if moves is not None:
        if args.today is None:
            option, value = next(iter(_moves_given(args).items()))
            words = "moves from no present configuration"
            raise refused(
                "", option, words, value, "--today PLAN, the configuration that runs today"
            )
        current = _today(instance, args)
        if problem.demand.leaderless and [*_moves_given(args)] == ["--max-moves"]:
            args.embed = True  # the instance has a level of its own
            from placement.model.constraints import Diversity

            least, largest = problem.rules.replicas_min, problem.rules.replicas_max
            if least < largest or problem.rules.voters < largest:
                asked = f"{least}..{largest}, {problem.rules.voters}"
                words, expected = "moves of a store without a leader", "one number of replicas"
                expected += ", which all vote"
                raise refused("", "--replicas, --voters", words, asked, expected)
            sites = range(len(problem.instance.sites))
            here = tuple("of today" if site in current.replicas else "new" for site in sites)
            # of n sites a set of k keeps m: n - m leave and k - m join, at most the given number
            kept = -((args.max_moves - len(current.replicas) - largest) // 2)
            rule = Diversity("group", role="replicas", domain="of today", least=max(0, kept))
            instance = problem.instance.replace(domains={**problem.instance.domains, "group": here})
            problem = problem.replace(instance=instance, diversity=(*problem.diversity, rule))
        else:
            problem = problem.replace(current=current, moves=moves)
    return apply_measures(problem, args)


def question_of_sizes(
    args: argparse.Namespace, instance: Instance
) -> tuple[Problem, tuple[int, ...], tuple[int, ...] | None]:
    """Read the numbers, and build the problem of the largest cell."""
    sizes, given = counts(args.replicas), ",".join(args.replicas)
    if not sizes:
        expected = "numbers: 5, 3..9, or 3,5,7"
        raise refused("", "--replicas", "no numbers of replicas", given, expected)
    expected = "numbers: 3, 3..5, or 3,5; or sites by name"
    require(args.voters, "--voters", "no numbers of voters", None, expected)
    voters = counts(args.voters)
    if voters is not None:
        fitting = [count for count in voters if count <= sizes[-1]]
        words = "no number of voters fits into any number of replicas"
        require(fitting, "--voters", words, ",".join(args.voters), f"<= {sizes[-1]}")
        asked = [str(fitting[-1])]
    else:
        asked = list(names(args.voters, instance.sites))
    largest = min(sizes[-1], len(instance.sites))
    base = argparse.Namespace(**{**vars(args), "replicas": [str(largest)], "voters": asked})
    return question_from(base, instance), sizes, voters


# --- moves -----------------------------------------------------------------------------------


def read_moves(args: argparse.Namespace) -> Moves | None:
    """Return the moves of the options; None if no option is given."""
    if not _moves_given(args):
        return None
    from placement.evaluation.moves import PRICES, Moves

    prices: dict[str, float] = {}
    for entry in (part.strip() for text in args.move_price for part in text.split(",")):
        name, sign, number = entry.rpartition("=")
        price = types.read_number(number, "--move-price", 0.0, KEYS["copy_gb"].most)
        for part in (name,) if sign else PRICES:
            if part not in PRICES or part in prices:
                words = "a part is priced twice" if part in prices else "not a part of a move"
                expected = f"PART=MS with one of {', '.join(PRICES)}, each once"
                raise InputError(words, field="--move-price", value=entry, expected=expected)
            prices[part] = price
    return Moves(
        **prices,
        at_most=vars(args).get("max_moves"),
        horizon=1.0 if args.move_horizon is None else args.move_horizon,
        copy_gb=args.copy_gb,
        stored_gb=args.replica_gb,
    )


def _moves_given(args: argparse.Namespace) -> dict[str, object]:
    """Return the options of moves that are given, and their values."""
    found = {
        key.option: getattr(args, key.name, None) for key in KEYS.values() if key.group == "moves"
    }
    return {option: value for option, value in found.items() if value not in (None, [])}


# --- measures --------------------------------------------------------------------------------


def apply_measures(problem: Problem, args: argparse.Namespace) -> Problem:
    """Return the problem with the measures that the options ask for, joined with what it asks.

    Options that contradict each other or do nothing are refused.
    """
    given = vars(args)
    asked = {n: given[n] for n in ("minimise", "maximise", "keep") if given.get(n)}
    if args.percentile is not None:
        words, expected = "one measure is minimised", "one of --percentile and --minimise"
        require("minimise" not in asked, "--percentile", words, args.percentile, expected)
        asked["minimise"] = f"p{args.percentile:.12g}"
    outages = given.get("outage") or ()
    for one in outages:
        require(asked, "--outage", "does nothing without --minimise or --keep", one)
    from placement.measures import MeasureKind, read_limit, read_measure

    read = [read_measure(text) for text in given.get("of") or ()]
    read += [read_limit(text).measure for text in asked.get("keep", ())]
    read += [read_measure(asked[name]) for name in ("minimise", "maximise") if name in asked]
    late = [m for m in read if m.kind in {MeasureKind.PERCENTILE, MeasureKind.WITHIN}]
    option = "--keep" if "keep" in asked else "--minimise"
    if late:
        told = (option, str(late[0])) if args.percentile is None else ("--percentile", None)
        if args.distributions is None and args.spread is None:
            words = "needs the distributions of RTTs"
            expected = "--distributions FILE, or --spread V where only means are known"
            raise refused("", told[0], words, told[1] or args.percentile, expected)
        asked["distributions"] = distributions_from(problem.instance, args)
    for key in (key for key in KEYS.values() if key.group == "tail" and not late):
        value, by_option = getattr(args, key.name), key.name in given.get("given", ())
        words = "does nothing without --percentile, or a measure such as p99 or within 100 ms"
        # a file may hold them for later
        require(value is None or not by_option, key.option, words, value, "none")
    moved = [m for m in read if m.kind in {MeasureKind.CHANGES, MeasureKind.COPIED}]
    if moved and problem.current is None:
        words = "changes and copies are counted from the present configuration"
        expected = "--today PLAN, the configuration that runs today"
        require(given.get("today") is not None, option, words, str(moved[0]), expected)
        asked["current"] = _today(problem.instance, args)
    if outages:
        asked["outages"] = types.read_named_numbers(outages, "--outage", "NAME=P")
    return problem.replace(**asked) if asked else problem


def distributions_from(instance: Instance, args: argparse.Namespace) -> tuple[Distributions, ...]:
    """Return the distributions of the options, one for each interval whose RTTs vary."""
    for first, others in (
        ("distributions", ("spread", "family")),
        ("spread", ("client_distributions",)),
    ):
        for other in others:
            one, more = getattr(args, first), getattr(args, other)
            words = f"does not go with {KEYS[first].option}"
            require(one is None or more is None, KEYS[other].option, words, more, "one")
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
        words = "a file has one distribution per pair, but the RTTs vary by interval"
        expected = "--spread, which gives each interval its own distributions"
        require(not whole.varying_rtt, "--distributions", words, args.distributions, expected)
        from placement.io.rtt_distributions import read_distributions

        return read_distributions(
            args.distributions,
            instance,
            clients=args.client_distributions,
            width=width,
            horizon=args.rtt_horizon,
        )
    from placement.support.checks import number
    from placement.tail.rtt_distributions import spread_distributions

    family: Family = "gamma" if args.family == "gamma" else "lognormal"
    return spread_distributions(
        instance,
        number(args.spread, "--spread"),
        whole=whole,
        family=family,
        width=width,
        horizon=args.rtt_horizon,
    )
