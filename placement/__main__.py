"""Run the command ``placement`` by ``python -m placement``."""

from __future__ import annotations

import sys

from placement.cli import main

sys.exit(main())
