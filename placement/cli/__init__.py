"""The command line: ``placement VERB …``.

One module per verb; nothing heavy is imported before a verb runs.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from placement.cli.exit_codes import INTERRUPTED

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line: :func:`placement.cli.dispatch.main`, its import included."""
    try:
        from placement.cli.dispatch import main as run
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    return run(argv)
