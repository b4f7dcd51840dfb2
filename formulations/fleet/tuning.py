"""Tuning constants of the search for fleets, in one table.

None of them matters for correctness: they decide how long a search takes, and which of several
plans it finds first. The brackets name the questions that a value was measured on. ``[no study]``
marks a value that was chosen by hand. Constants on which correctness or a file format depends stand
where they are used.
"""

# column_generation
SMOOTHING = 0.5
"""Part of the prices of the best bound in the next prices [fleet]."""
LARGER_PENALTY = 30.0
"""Factor by which the penalty of overloads is raised [no study]."""
MOST_PENALTIES = 6
"""Times that it is raised before the search gives up [no study]."""
SHARE_OF_GAP = 0.25
"""Part of the wanted gap that is left to the relaxation; the rest is for rounding [fleet]."""

# pricing_workers
MOST_RESTARTS = 3
"""Times that the same batch is sent again before the search fails [no study]."""
CONNECT_SECONDS = 20.0
"""Time to reach the scheduler of a cluster and one of its workers [no study]."""

# rounding
ROUNDED_COLUMNS, ALL_ROUNDED_COLUMNS = 12, 3000
"""Columns of each database in the integer program, those of least reduced cost: at least, and more
where fewer than the second number are of all databases [fleet]."""
PLACED_FIRST = 150
"""Databases placed whole before all others: those that take most of some limit [no study]."""
PLACED_AGAIN, MOST_AGAIN = 10, 20
"""Databases that pay most, and as many times four others, that are placed again at a time: at
first, and at most [fleet]."""
LITTLE = 0.05
"""Part of the gap that placing so many again has to close, or more are placed [no study]."""
MARGINS = (0.0, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1)
"""Parts of the limits kept for the databases that the relaxation splits, tried in turn. 100,000
databases in 2,000 groups at 48 sites: 0.0003 costs 0.004 % of the value, 0.01 0.09 %."""
ROUNDING_NODES = 5
"""Nodes of one integer program: most end at the first. A time limit would make plans differ from
run to run [fleet]."""
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
PRICINGS = 4
"""Rounds of pricing before such an integer program [fleet]."""
POLISHES = 24
"""Integer programs that improve the plan [fleet]."""
