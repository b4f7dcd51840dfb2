"""``placement watch``: recommend to keep or to move after every interval, as intervals arrive."""

from __future__ import annotations

import argparse
import json
import sys
import time
from functools import partial
from typing import TYPE_CHECKING

from placement.cli import exit_codes as exits
from placement.cli import options as types
from placement.cli.options import Subparsers, Switch, add_verb, settings_from
from placement.cli.problem_options import (
    apply_measures,
    instance_from,
    present_configuration,
    problem_from,
)
from placement.errors import UnsupportedError
from placement.text.text_tables import escape

if TYPE_CHECKING:
    from collections.abc import Mapping

    from placement.model.instance import Instance
    from placement.overtime.moves import MovePrices
    from placement.overtime.watch.arrivals import Rejection
    from placement.overtime.watch.recommend import WatchSettings
    from placement.overtime.watch.watch_loop import Watch
    from placement.problem import Problem

_LARGEST = sys.float_info.max
"""Largest horizon and price: a weighing of the two, in which no finite number is too large."""

DEFAULT_HORIZON = 8.0


def add_parser(verbs: Subparsers) -> None:
    """Add the verb."""
    parser = add_verb(verbs, "watch", run)
    parser.ask("instance")
    parser.add("",
        Switch("intervals", "INTERVALS", "a folder of files, or one table that grows"),
        Switch("--state", "FILE", "the state file", required=True),
    )  # fmt: skip
    parser.ask("question", "constraints", "prices")
    parser.ask("tail", leave=("--horizon",))
    price = types.number(0, _LARGEST, infinite=True)
    meant = "in ms added to the latency of one interval; inf forbids it (default 0 where another "
    meant += "price is given; else from the variability of INSTANCE)"
    parser.add("when to move",
        Switch("--horizon", "H", "intervals that a gain is expected to last (default "
            f"{DEFAULT_HORIZON:g})", types.number(0, _LARGEST), DEFAULT_HORIZON),
        Switch("--confirm", "K", "intervals in a row in which the move must pay (default 1)",
            types.whole(1), 1),
        Switch("--leader-price", "MS", f"cost of another leader, {meant}", price),
        Switch("--voter-price", "MS", f"cost of a vote given or taken, {meant}", price),
        Switch("--add-price", "MS", f"cost of a replica copied to a new site, {meant}", price),
        Switch("--remove-price", "MS", f"cost of a replica given up, {meant}", price),
        Switch("--start", "PLAN", "the plan that runs now"),
    )  # fmt: skip
    parser.add("reading",
        Switch("--once", "", "read the present intervals, and end (default)"),
        Switch("--follow", "", "go on until Ctrl-C"),
        Switch("--adopt", "PLAN", "read no demand: record that this plan runs, instead of the "
            "last recommendation"),
        Switch("--log", "", "read no demand: show the content of the state file"),
        one=True,
    )  # fmt: skip
    parser.add("reading",
        Switch("--poll", "S", "seconds between two reads of the folder or table (default 5)",
            types.number(0, 1e6), 5.0),
        Switch("--settle", "S", "seconds a file must be unchanged; 0 where files are renamed "
            "into place (default 1)", types.number(0, 1e6), 1.0),
        Switch("--grace", "G", "take an interval of a folder once G later ones have arrived "
            "(default 0)", types.whole(), 0),
        Switch("--final", "", "take the last interval of a table as complete"),
        Switch("--database", "NAME", "rows of this database only"),
    )  # fmt: skip
    parser.ask("method", only=("method", "set"))
    parser.add("output", Switch("--json", "", "one JSON document per recommendation and line"))
    parser.needs(poll="follow")
    parser.set_defaults(decay=2.0)  # as the help says; all verbs share the option itself


def run(args: argparse.Namespace) -> int:
    """Recommend to keep or to move after every interval, as intervals arrive.

    Intervals of demand arrive in a folder or at the end of a table. To move is told with the safe
    steps. All state is in one file: a watch may be killed at any moment and started again. The
    decay is 2 unless --decay says otherwise.
    """
    from placement.methods.registry import load_method, refusal
    from placement.overtime.watch.arrivals import CountColumns, source_of
    from placement.overtime.watch.state_store import Store
    from placement.overtime.watch.watch_loop import Watch

    if args.log:
        return _log(args)
    instance = instance_from(args)
    settings = _settings(args, instance)
    if (why := refusal(load_method(settings.method), settings.problem)) is not None:
        raise UnsupportedError(f"method {settings.method!r} does not support this problem: {why}")
    if reasons := _infeasible(settings):
        print("infeasible: " + "; ".join(reasons), file=sys.stderr)
        return exits.INFEASIBLE
    names = tuple(operation.name for operation in instance.operations)
    columns = CountColumns(instance.clients, names, args.database)
    source = source_of(
        args.intervals, columns, settle=args.settle, final=args.final, follow=args.follow
    )
    store = Store.open(args.state, settings)
    try:
        if args.adopt is not None:
            present = present_configuration(instance, args.adopt)
            store.record_deployed(present, args.adopt, instance.sites)
            return exits.FOUND
        watch = Watch(settings, source, store, partial(_print, args.json), _print_rejection)
        watch.resume()
        args.until_interrupted = args.follow
        if not args.follow:
            return _once(watch, args)
        try:
            while True:
                if not watch.poll().used:
                    time.sleep(args.poll)
        except KeyboardInterrupt:
            count = watch.store.sequence
            print(f"stopped after {count} intervals; {args.state} holds them", file=sys.stderr)
            return exits.FOUND
    finally:
        store.close()


def _infeasible(settings: WatchSettings) -> tuple[str, ...]:
    """Say why no configuration obeys the rules, before anything is read or written."""
    from placement.errors import LimitError
    from placement.feasibility.feasible_plans import find_feasible, reasons_infeasible

    try:
        if find_feasible(settings.problem) is not None:
            return ()
    except LimitError:  # the method may know better, and says so if not
        return ()
    return reasons_infeasible(settings.problem) or ("no configuration obeys all rules",)


def _once(watch: Watch, args: argparse.Namespace) -> int:
    """Look, and once more when a file was too young the first time.

    Returns "bad input" when all that there was to read cannot be read.
    """
    look = watch.poll()
    readable = bool(look.used or look.held)
    unreadable = look.unreadable
    if look.waiting and args.settle:
        time.sleep(args.settle)
        look = watch.poll()
        readable |= bool(look.used or look.held)
        unreadable += look.unreadable
    for name in look.waiting:
        print(escape(f"not whole yet: {name}; left for the next time"), file=sys.stderr)
    if look.held:
        print(f"held back until later ones arrive: {look.held} intervals", file=sys.stderr)
    return exits.BAD_INPUT if unreadable and not readable else exits.FOUND


def _settings(args: argparse.Namespace, instance: Instance) -> WatchSettings:
    from placement.overtime.decayed_counts import Decay
    from placement.overtime.moves import Hysteresis
    from placement.overtime.watch.recommend import WatchSettings

    problem = apply_measures(problem_from(args, instance), args)
    return WatchSettings(
        problem,
        Decay(args.decay),
        Hysteresis(args.horizon, args.confirm),
        _prices(args, problem),
        args.method,
        settings_from(args),
        None if args.start is None else present_configuration(instance, args.start),
        args.grace,
    )


def _prices(args: argparse.Namespace, problem: Problem) -> MovePrices:
    """Return the prices of the options, or those that the variability of the instance suggests."""
    from placement.methods.registry import load_method, refusal
    from placement.overtime.moves import MovePrices

    given = (args.leader_price, args.voter_price, args.add_price, args.remove_price)
    if any(price is not None for price in given):
        return MovePrices(*(0.0 if price is None else price for price in given))
    if refusal(load_method(args.method), problem) is not None:
        return MovePrices()  # the refusal is told later
    from placement.overtime.watch.recommend import default_prices

    return default_prices(problem, args.method)


def _print(as_json: bool, document: Mapping[str, object]) -> None:
    """Print a recommendation as text or a line of JSON, at once."""
    print(json.dumps(document, allow_nan=False) if as_json else _text(document), flush=True)


def _text(document: Mapping[str, object]) -> str:
    """Return a recommendation for people."""
    then = document["then_ms"]
    head = f"{document['interval']}  {document['action']}"
    places = document.get("voters")
    if document["leader"] is None and isinstance(places, list) and places:
        head += f"  replicas {', '.join(map(str, places))}"
    if document["leader"] is not None:
        head += f"  leader {document['leader']}"
    if isinstance(then, float):
        words = str(document.get("objective", "mean latency"))
        head += f"  {then:.3f} ms" + ("" if words == "mean latency" else f" {words}")
    lines = [escape(head)]
    reasons, steps = document["reasons"], document["steps"]
    assert isinstance(reasons, list)
    assert isinstance(steps, list)
    lines += [f"  {escape(reason)}" for reason in reasons]
    lines += [f"  {i}. {escape(step['text'])}" for i, step in enumerate(steps, start=1)]
    return "\n".join(lines)


def _print_rejection(report: Rejection) -> None:
    place = f"interval {report.interval}: " if report.interval else ""
    tail = "" if report.kind == "adopted" else "; not used"
    line = f"{report.kind}: {report.source}: {place}{report.message}{tail}"
    print(escape(line), file=sys.stderr, flush=True)


def _log(args: argparse.Namespace) -> int:
    from placement.overtime.watch.state_store import read_log

    documents, reports = read_log(args.state)
    for document in documents:
        _print(args.json, document)
    for report in reports:
        _print_rejection(report)
    return exits.FOUND
