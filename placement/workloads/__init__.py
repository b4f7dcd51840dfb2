"""Seeded synthetic workloads: who issues how many operations of which kind, from where, and when.

    clients  = Clients.from_cities(datasets.cities())
    timeline = Timeline.of_day(date(2026, 3, 2), intervals=14 * 48)
    tenants  = fleet(clients, 1000, seed=7, timeline=timeline)
    for block in generate(tenants, clients, timeline, seed=7):
        ...      # block.counts, of shape (databases, intervals, clients, operations)

See :mod:`placement.workloads.fleets` for the law.
"""

from placement.support.lazy import lazy_names
from placement.workloads.activity import FRIDAY_SATURDAY as FRIDAY_SATURDAY
from placement.workloads.activity import USER_EXPONENT as USER_EXPONENT
from placement.workloads.activity import Clients as Clients
from placement.workloads.activity import Consumer as Consumer
from placement.workloads.activity import Curve as Curve
from placement.workloads.activity import Event as Event
from placement.workloads.activity import FlashCrowd as FlashCrowd
from placement.workloads.activity import Flat as Flat
from placement.workloads.activity import Holiday as Holiday
from placement.workloads.activity import Launch as Launch
from placement.workloads.activity import LocalTime as LocalTime
from placement.workloads.activity import Migration as Migration
from placement.workloads.activity import NightlyBatch as NightlyBatch
from placement.workloads.activity import Office as Office
from placement.workloads.activity import Outage as Outage
from placement.workloads.activity import Scene as Scene
from placement.workloads.activity import Timeline as Timeline
from placement.workloads.activity import everywhere as everywhere
from placement.workloads.activity import home_and_tail as home_and_tail
from placement.workloads.activity import local_time as local_time
from placement.workloads.activity import national as national
from placement.workloads.activity import regional as regional
from placement.workloads.activity import two_poles as two_poles
from placement.workloads.fleets import AR1 as AR1
from placement.workloads.fleets import CONCENTRATION as CONCENTRATION
from placement.workloads.fleets import FOOTPRINTS as FOOTPRINTS
from placement.workloads.fleets import MIXES as MIXES
from placement.workloads.fleets import TENANTS as TENANTS
from placement.workloads.fleets import Block as Block
from placement.workloads.fleets import Database as Database
from placement.workloads.fleets import Law as Law
from placement.workloads.fleets import apart_groups as apart_groups
from placement.workloads.fleets import autoregress as autoregress
from placement.workloads.fleets import database_sizes as database_sizes
from placement.workloads.fleets import expected_demand as expected_demand
from placement.workloads.fleets import fleet as fleet
from placement.workloads.fleets import generate as generate
from placement.workloads.fleets import mix_shares as mix_shares
from placement.workloads.fleets import sample_mix as sample_mix
from placement.workloads.fleets import standard_database as standard_database
from placement.workloads.fleets import write_parquet as write_parquet

__getattr__, __dir__ = lazy_names(__name__)
