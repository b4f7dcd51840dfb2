"""A network with a folder and processes for the servers on it, all ended together."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Self

from benchmarks.live.delay_proxy import DelayProxy
from benchmarks.live.emulated_wan import EmulatedWan
from benchmarks.live.processes import Processes
from placement import Instance

__all__ = ["ServerBench"]


class ServerBench:
    """Network of an instance with the resources of its servers, as a context.

    Parameters
    ----------
    instance
        Sites, clients and RTTs.
    wan
        Its network, not yet open.
    name
        Part of the name of the folder.
    """

    def __init__(self, instance: Instance, wan: EmulatedWan | DelayProxy, name: str) -> None:
        self.instance, self.wan = instance, wan
        self._name = name
        self._processes = Processes()
        self._folder = Path()

    def __enter__(self) -> Self:
        self.wan.__enter__()
        self._folder = Path(tempfile.mkdtemp(prefix=f"live-{self._name}-"))
        return self

    def __exit__(self, *_: object) -> None:
        self._processes.stop_all()
        self.wan.close()
        shutil.rmtree(self._folder, ignore_errors=True)
