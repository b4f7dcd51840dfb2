"""Seeded synthetic workloads: who issues how many operations of which kind, from where, and when.

    clients  = Clients.from_cities(datasets.cities())
    timeline = Timeline.of_day(date(2026, 3, 2), intervals=14 * 48)
    tenants  = fleet(clients, 1000, seed=7, timeline=timeline)
    for block in generate(tenants, clients, timeline, seed=7):
        ...      # block.counts, of shape (databases, intervals, clients, operations)

See :mod:`placement.workloads.fleets` for the law.
"""

from placement.support.lazy import lazy_names
from placement.workloads.activity import (
    FRIDAY_SATURDAY,
    Consumer,
    Curve,
    Event,
    FlashCrowd,
    Flat,
    Holiday,
    Launch,
    LocalTime,
    Migration,
    NightlyBatch,
    Office,
    Outage,
    Scene,
    Timeline,
    local_time,
)
from placement.workloads.fleets import (
    AR1,
    CONCENTRATION,
    FOOTPRINTS,
    MIXES,
    TENANTS,
    Block,
    Database,
    Law,
    apart_groups,
    autoregress,
    database_sizes,
    expected_demand,
    fleet,
    generate,
    mix_shares,
    sample_mix,
    standard_database,
    write_parquet,
)
from placement.workloads.footprints import (
    USER_EXPONENT,
    Clients,
    everywhere,
    home_and_tail,
    national,
    regional,
    two_poles,
)

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
