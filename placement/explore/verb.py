"""``placement explore``: a page on this machine that answers each change with a proven plan."""

from __future__ import annotations

import argparse
import ipaddress
import socket
import sys
from typing import TYPE_CHECKING

from placement.cli import argument_parser as types
from placement.cli import dispatch as exits
from placement.cli.argument_parser import Subparsers
from placement.cli.option_groups.price_options import add_prices
from placement.cli.options import add_instance, instance_from
from placement.errors import InputError, MissingDependencyError, install_hint

if TYPE_CHECKING:
    from placement.explore.jobs import Explorer
    from placement.explore.question import Origin

__all__ = ["add_parser", "run", "serve"]


def add_parser(verbs: Subparsers) -> None:
    """Add the verb."""
    parser = verbs.add_parser(
        "explore",
        help="open a page in the browser that answers every change of the question with a proven "
        "plan",
        description="Start a local web application for one instance and open it in the browser. "
        "Click sites on the map, change numbers, demand and prices: each change is answered with "
        "the optimal plan and its proof. The page can be reached from this machine only, and its "
        "address holds a random token. Ctrl-C ends the server. Needs "
        f"Starlette and uvicorn: {install_hint('explore')}.",
    )
    add_instance(parser)
    add_prices(parser)
    group = parser.add_argument_group("server")
    group.add_argument(
        "--port",
        type=types.whole(0, 65535),
        default=0,
        metavar="N",
        help="port (default: a free one)",
    )
    group.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="address to listen on (default 127.0.0.1: this machine only)",
    )
    group.add_argument(
        "--open",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="open the page in the browser (default)",
    )
    group.add_argument(
        "--time-limit",
        type=types.seconds,
        default=30.0,
        metavar="S",
        help="time limit of one search in seconds (default 30)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    try:
        import starlette  # noqa: F401 - the application needs it
        import uvicorn  # noqa: F401 - the server needs it
    except ImportError as error:
        raise MissingDependencyError.of(
            "the explorer needs Starlette and uvicorn", "explore"
        ) from error
    from placement.explore.jobs import Explorer

    args.until_interrupted = True
    explorer = Explorer(instance_from(args), _origin(args), args.time_limit)
    with _listen(args.host, args.port) as listening:
        serve(explorer, listening, open_page=args.open)
    return exits.FOUND


def serve(explorer: Explorer, listening: socket.socket, *, open_page: bool) -> None:
    """Serve on a socket until Ctrl-C, and print the address first."""
    from placement.explore.server import application, host_names, new_token, web_server
    from placement.explore.worker import Worker

    host, port = listening.getsockname()[:2]
    token = new_token()
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{port}/{token}/"
    worker = Worker(explorer)
    try:
        app = application(explorer, worker, token, host_names(host, port))
        print(f"{address}\nCtrl-C ends the server.", flush=True)
        if not ipaddress.ip_address(host).is_loopback:
            print(
                "warning: other machines can reach this server; who knows its address can use it",
                file=sys.stderr,
            )
        if open_page:
            import webbrowser

            webbrowser.open(address)
        web_server(app).run(sockets=[listening])
    finally:
        worker.close()


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; the port is then known before the server starts."""
    try:
        version = ipaddress.ip_address(host).version
    except ValueError:
        raise InputError(
            "not an address", field="--host", value=host, expected="an IP address, as 127.0.0.1"
        ) from None
    family = socket.AF_INET6 if version == 6 else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
        found.listen(128)
    except OSError as error:
        found.close()
        raise InputError(
            f"cannot listen there ({error})", field="--host, --port", value=f"{host}, {port}"
        ) from None
    return found


def _origin(args: argparse.Namespace) -> Origin:
    """Return where the instance comes from, with the options that changed it."""
    from placement.explore.question import Origin

    words = []
    for option, value in sorted(vars(args).items()):
        if option in _REPEATED and value:
            flag = "--" + option.replace("_", "-")
            values = value if isinstance(value, list) else [value]
            words += [word for one in values for word in (flag, str(one))]
    return Origin(args.instance, args.mix, args.workload_seed, tuple(words))


_REPEATED = frozenset(
    (
        "scale_demand",
        "without",
        "wait",
        "prices",
        "transfer",
        "zones",
        "marginal_gb",
        "client_sites",
        "gb_per_op",
        "written_gb",
        "interval_hours",
        "stored_gb",
        "replication",
    )
)
"""Options that change the instance, by the name of their value."""
