"""Seeded synthetic workloads: who issues how many operations of which kind, from where, and when.

    clients  = Clients.from_cities(datasets.cities())
    timeline = Timeline.of_day(date(2026, 3, 2), intervals=14 * 48)
    tenants  = fleet(clients, 1000, seed=7, timeline=timeline)
    for block in generate(tenants, clients, timeline, seed=7):
        ...      # block.counts, of shape (databases, intervals, clients, operations)

See :mod:`placement.workloads.generate_counts` for the law.
"""

from placement.support.lazy import lazy_names
from placement.workloads.calendar import FRIDAY_SATURDAY, LocalTime, Timeline, local_time
from placement.workloads.diurnal import Consumer, Curve, Flat, Office
from placement.workloads.events import (
    Event,
    FlashCrowd,
    Holiday,
    Launch,
    Migration,
    NightlyBatch,
    Outage,
    Scene,
)
from placement.workloads.fleets import FOOTPRINTS, TENANTS, Database, fleet, standard_database
from placement.workloads.footprints import (
    USER_EXPONENT,
    Clients,
    everywhere,
    home_and_tail,
    national,
    regional,
    two_poles,
)
from placement.workloads.generate_counts import Block, Law, generate
from placement.workloads.mixes import CONCENTRATION, MIXES, mix_shares, sample_mix
from placement.workloads.noise import AR1, autoregress
from placement.workloads.parquet import write_parquet
from placement.workloads.shared_capacity import apart_groups, database_sizes, expected_demand

__all__ = [
    "AR1",
    "CONCENTRATION",
    "FOOTPRINTS",
    "FRIDAY_SATURDAY",
    "MIXES",
    "TENANTS",
    "USER_EXPONENT",
    "Block",
    "Clients",
    "Consumer",
    "Curve",
    "Database",
    "Event",
    "FlashCrowd",
    "Flat",
    "Holiday",
    "Launch",
    "Law",
    "LocalTime",
    "Migration",
    "NightlyBatch",
    "Office",
    "Outage",
    "Scene",
    "Timeline",
    "apart_groups",
    "autoregress",
    "database_sizes",
    "everywhere",
    "expected_demand",
    "fleet",
    "generate",
    "home_and_tail",
    "local_time",
    "mix_shares",
    "national",
    "regional",
    "sample_mix",
    "standard_database",
    "two_poles",
    "write_parquet",
]

__getattr__, __dir__ = lazy_names(__name__)
