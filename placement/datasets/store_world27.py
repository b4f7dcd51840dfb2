"""Writer of the arrays beside this module: the RTTs and the default day of demand of ``world27``.

Making them takes longer than answering most questions about them, so they are stored. The command
``python -m placement.datasets.store_world27`` makes and writes them again after a change of the
models or tables that they come from.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from placement.datasets.modelled import (
    COUNTS_FILE,
    RTT_FILE,
    modelled,
    world27_cities,
    world27_sites,
)


def write_arrays(folder: Path) -> None:
    """Make the two arrays from the models and write them into a folder."""
    made = modelled("world27", world27_sites(), world27_cities())
    np.save(folder / RTT_FILE, np.concatenate([made["client_rtt"], made["site_rtt"]]))
    np.save(folder / COUNTS_FILE, made["counts"].astype("<u4"))


if __name__ == "__main__":
    write_arrays(Path(__file__).parent)
