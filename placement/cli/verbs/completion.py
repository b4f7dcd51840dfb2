"""``placement completion``: the lines that teach a shell to complete words."""

from __future__ import annotations

import argparse

from placement.cli import dispatch as exits
from placement.cli.argument_parser import Subparsers
from placement.cli.dispatch import shell_script

__all__ = ["add_parser", "run"]


def add_parser(verbs: Subparsers) -> None:
    """Add the verb."""
    parser = verbs.add_parser(
        "completion",
        help="print the lines that let bash, zsh or fish complete verbs, options and names",
        description="Print the lines that let a shell complete verbs, options, data sets, methods "
        'and sites. Add to ~/.bashrc or ~/.zshrc: eval "$(placement completion bash)" (or zsh); '
        "to ~/.config/fish/config.fish: placement completion fish | source",
    )
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the lines."""
    print(shell_script(args.shell))
    return exits.FOUND
