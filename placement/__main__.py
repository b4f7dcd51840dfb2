"""``python -m placement`` is the same as ``placement``."""

from __future__ import annotations

import sys

from placement.cli.dispatch import main

sys.exit(main())
