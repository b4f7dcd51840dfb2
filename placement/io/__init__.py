"""Files in and out: instances as folders, plans as JSON, RTT tables of many kinds, pandas."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from placement.support.lazy import lazy_names

if TYPE_CHECKING:
    from placement.io.assemble_instance import assemble as assemble
    from placement.io.assemble_instance import read_counts as read_counts
    from placement.io.feeds.rtt_tables import read_rtt as read_rtt
    from placement.io.instance_folder import load_instance as load_instance
    from placement.io.instance_folder import save_instance as save_instance
    from placement.io.plan_file import load_any_plan as load_any_plan
    from placement.io.plan_file import load_plan as load_plan
    from placement.io.plan_file import plan_document as plan_document
    from placement.io.plan_file import save_plan as save_plan
    from placement.io.rtt_table import RttTable as RttTable

_HOME = {
    "placement.io.assemble_instance": ("assemble", "read_counts"),
    "placement.io.instance_folder": ("load_instance", "save_instance"),
    "placement.io.plan_file": ("load_any_plan", "load_plan", "plan_document", "save_plan"),
    "placement.io.feeds.rtt_tables": ("read_rtt",),
    "placement.io.rtt_table": ("RttTable",),
}

__all__ = [*chain.from_iterable(_HOME.values())]

__getattr__, __dir__ = lazy_names(__name__, _HOME)
