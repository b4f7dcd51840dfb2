"""Files in and out: instances as folders, plans as JSON, RTT tables of many kinds, pandas."""

from __future__ import annotations

from placement.io.assemble import assemble, read_counts
from placement.io.importers import (
    LongColumns,
    RttTable,
    read_cloudping,
    read_long_rtt,
    read_rtt,
    read_square_rtt,
)
from placement.io.instance import load_instance, save_instance
from placement.io.plan import load_plan, plan_document, save_plan

__all__ = [
    "LongColumns",
    "RttTable",
    "assemble",
    "load_instance",
    "load_plan",
    "plan_document",
    "read_cloudping",
    "read_counts",
    "read_long_rtt",
    "read_rtt",
    "read_square_rtt",
    "save_instance",
    "save_plan",
]
