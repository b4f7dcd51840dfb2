"""The command line: ``placement VERB …``.

One module per verb, each with ``add_parser(verbs)`` and ``run(args) -> exit code``; nothing heavy
is imported before a verb runs, so that ``placement --help`` costs next to nothing.
"""

from __future__ import annotations

from placement.cli.dispatch import main

__all__ = ["main"]
