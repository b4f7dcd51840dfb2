"""``placement explore``: a page on this machine that answers each change with a proven plan."""

from __future__ import annotations

import argparse
import ipaddress
import socket
import sys
from typing import TYPE_CHECKING

from placement.cli import exit_codes as exits
from placement.cli import options as types
from placement.cli.options import Subparsers, Switch, add_verb, question_of
from placement.cli.problem_options import instance_from
from placement.errors import InputError, refused
from placement.question import KEYS, Question

if TYPE_CHECKING:
    from placement.explore.jobs import Explorer


def add_parser(verbs: Subparsers) -> None:
    """Add the verb."""
    parser = add_verb(verbs, "explore", run)
    parser.ask("instance", "prices")
    parser.add("server",
        Switch("--port", "N", "port (default: a free one)", types.whole(0, 65535), 0),
        Switch("--host", "ADDRESS", "address to listen on (default 127.0.0.1: this machine only)",
            default="127.0.0.1"),
        Switch("--open", "", "open the page in the browser (default)", default=True,
            toggle=True),
    )  # fmt: skip
    meant = {"time_limit": "time limit of one search in seconds (default 30)"}
    parser.ask("method", only=("time_limit",), helps=meant)
    parser.set_defaults(time_limit=30.0)


def run(args: argparse.Namespace) -> int:
    """Open a page in the browser that answers every change of the question with a proven plan.

    Click sites on the map, change numbers, demand and prices. The page can be reached from this
    machine only, and its address holds a random token. Ctrl-C ends the server.
    """
    from placement.explore.jobs import Explorer
    from placement.explore.question import page_question

    args.until_interrupted = True
    instance, start = instance_from(args), None
    if args.question is not None:
        start = page_question(args.question, instance, files=True)
    names = {key.name for key in KEYS.values() if key.group in ("instance", "prices")}
    given = {key.name: value for key, value in question_of(args).given() if key.name in names}
    explorer = Explorer(instance, Question(**given), args.time_limit, start)
    with _listen(args.host, args.port) as listening:
        serve(explorer, listening, open_page=args.open)
    return exits.FOUND


def serve(explorer: Explorer, listening: socket.socket, *, open_page: bool) -> None:
    """Serve on a socket until Ctrl-C, and print the address first."""
    from placement.explore.server import ExplorerServer, in_address
    from placement.explore.worker import Worker

    host, port = listening.getsockname()[:2]
    worker = Worker(explorer)
    try:
        server = ExplorerServer(listening, worker)
        address = f"http://{in_address(host)}:{port}/{server.token}/"
        print(f"{address}\nCtrl-C ends the server.", flush=True)
        if not ipaddress.ip_address(host).is_loopback:
            print(
                "warning: other machines can reach this server; who knows its address can use it",
                file=sys.stderr,
            )
        if open_page:
            import webbrowser

            webbrowser.open(address)
        server.serve_forever()
    except KeyboardInterrupt:
        return
    finally:
        worker.close()


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; the port is then known before the server starts."""
    try:
        version = ipaddress.ip_address(host).version
    except ValueError:
        expected = "an IP address, as 127.0.0.1"
        raise refused("", "--host", "not an address", host, expected) from None
    try:
        family = socket.AF_INET6 if version == 6 else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        raise InputError(
            f"cannot listen there ({error})", field="--host, --port", value=f"{host}, {port}"
        ) from None
