"""Layouts under which the operations of systems are measured: RTTs and disks.

Probes have RTTs that tell the terms of a commit apart. The others are RTTs of an Azure measurement
between sites that were drawn at random.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np

import placement

SITES = (
    "East US", "West US 2", "North Europe", "Germany West Central", "Brazil South",
    "Southeast Asia", "Japan East", "Australia East", "Central India", "UK South",
)  # fmt: skip
VOTERS = 3
CLIENTS = ("Central US", "West Europe", "Southeast Asia")


@dataclass(frozen=True, slots=True)
class Layout:
    """RTTs and disks under which operations are measured.

    Attributes
    ----------
    part, name
        "probe", "fit" or "test", and what tables call it.
    between, clients
        RTT in ms of servers, the leader first, shape (n, n), and of clients to them, shape (c, n).
    disks
        ms that each server's disk adds to a flush.
    pause
        ms between two operations of a client: flushes that follow a write do not meet the next one.
    """

    part: str
    name: str
    between: Any
    clients: Any
    disks: tuple[float, ...]
    pause: int = 0


def layouts(servers: int) -> list[Layout]:
    """Return the probes, the fitted layout and five others, for three voters and learners.

    A learner of a probe is at 10 ms from the leader: nearer than any voter.
    """
    far = np.array([[0, 40, 80, 10], [40, 0, 60, 50], [80, 60, 0, 90], [10, 50, 90, 0.0]])
    near = np.array([far[0] + 1, far[1] + 1, [30, 50, 90, 35]])
    probe = [("no slow disk", (0, 0, 0)), ("leader's disk 60", (60, 0, 0)),
             ("nearest voter's disk 60", (0, 60, 0)), ("other voter's disk 60", (0, 0, 60)),
             ("all disks 60", (60, 60, 60)),
             ("all disks 60, no pause", (60, 60, 60))]  # fmt: skip
    found = [
        Layout("probe", name, far[:servers, :servers], near[:, :servers], (*disks, 0)[:servers],
               pause=0 if "no" in name.split() else 200)
        for name, disks in probe
    ]  # fmt: skip
    world = placement.load("azure")
    columns = np.array([world.client_index(name) for name in CLIENTS])
    for turn in range(6):
        sites = tuple(random.Random(100 + turn).sample(SITES, 4)[:servers])
        rows = np.array(world.site_indices(sites))
        between = world.site_rtt[np.ix_(rows, rows)]
        clients = world.client_rtt[np.ix_(columns, rows)]
        part = "test" if turn else "fit"
        name = f"cloud {turn}" if turn else "fitted"
        whole = Layout(part, name, (between + between.T) / 2, clients, (0,) * servers)
        found.append(whole)
        if turn == 1:
            slow = (25,) * servers
            name += ", disks 25"
            found.append(Layout(part, name, whole.between, clients, slow, 200))
    return found
