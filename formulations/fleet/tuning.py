"""Tuning constants of the search for fleets, in one table.

None of them matters for correctness: they decide how long a search takes, and which of several
plans it finds first. The brackets name the questions that a value was measured on. ``[no study]``
marks a value that was chosen by hand. Constants on which correctness or a file format depends stand
where they are used.
"""

# column_generation
SMOOTHING = 0.3
"""Part of the prices of the best bound in the next prices [exact.scale]."""
FIRST_PENALTY = 0.03
"""Penalty of an overload as large as a limit, as a part of the value [exact.scale]."""
LARGER_PENALTY, CLOSE = 10.0, 1e-3
"""Factor by which the penalty of overloads is raised, once the relative gap between the relaxation
and the bound is as small as the second number [no study]."""
MOST_PENALTIES = 9
"""Times that it is raised before the search gives up [no study]."""
SHARE_OF_GAP = 0.25
"""Part of the wanted gap that is left to the relaxation; the rest is for rounding [fleet]."""

# pricing_workers
MOST_RESTARTS = 3
"""Times that the same batch is sent again before the search fails [no study]."""
CONNECT_SECONDS = 20.0
"""Time to reach the scheduler of a cluster and one of its workers [no study]."""

# rounding
DIVES, DRAWN = 24, 0.3
"""Dives for a plan that is good, and the deviation of the logarithms of sizes behind the first
[no study]."""
TRIED = 0.05
"""Part of a limit from which on a database is fixed alone, once each part of it was tried
[no study]."""
TOGETHER, LAST_TOGETHER = 0.5, 20
"""Databases that are fixed together: those of at least such a part of the largest one's size, or
as few as the second number [exact.scale]."""
TABLE_CONFIGURATIONS = 20_000
"""Configurations of a database up to which all are in a table [no study]."""
KEPT_COSTS = 2e7
"""Numbers of the tables of objectives that are kept: 160 MB [no study]."""
SMALL_FLEET = 100
"""Databases of a small fleet, whose integer programs choose from all configurations [fleet]."""
SMALL_FLEET_COLUMNS = 30_000
"""Configurations in one of these programs [fleet]."""
FIRST_STEP = 2e-3
"""Part of the bound by which their plans may be above it at first [fleet]."""
SMALL_FLEET_NODES = 2000
"""Nodes of that program [no study]."""
LAST_SECONDS = 0.7
"""Time to place what the last master has split, once the search has been stopped [no study]."""
LAST_SECONDS_EACH = 1e-3
"""Time for each database of the fleet beside that: pricing one takes some milliseconds
[no study]."""
