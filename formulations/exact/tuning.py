"""Tuning constants of the engine in Python, in one table; csrc/tuning.h has the C constants.

None of them matters for correctness: they decide how long a search takes, and which of several
equally good plans it meets first. Each line names the value, its meaning and, in brackets, the
questions of ``python -m benchmarks run exact.speed`` that it was measured on, or others:
``[limits]`` have a budget, at most three changes, or both, ``[losses]`` the worst loss of a site.
Constants on which correctness or the format of a certificate depends stand where they are used.
"""

# branch_and_bound: the bounds of all leaders, then the trees
SCAN_STEPS = 20
"""Subgradient steps for each leader before any tree [small, medium, 100 x 200]."""
SCAN_SWAPS = 60
"""Most swaps of a descent before any tree [small, medium]."""
FULL_DESCENTS = 4
"""Leaders with a descent of their own; the others adapt the incumbent [small, medium]."""
QUICK_BOUND_CELLS = 20_000
"""Active clients x sites from which one evaluation for every leader pays [200 x 400]."""
SHARED_LEADERS = 300
"""Leaders from which multipliers that all of them share pay [exact.scale]."""
SHARED_CLOSED = 0.08
"""Share of the open leaders that shared multipliers have to close, to try others [exact.scale]."""
SHARED_TRIES = 2
"""Leaders in a row whose multipliers close fewer; then each has its own steps [exact.scale]."""
SCAN_WORK = 3e8
"""Most work of the steps for one leader; larger problems get fewer steps [1000 x 5000]."""
CHUNK_WORK = 2e7
"""Work between two returns to Python: a few hundredths of a second [all]."""
RELAX_EXPONENT = 1.5
"""Work of the first linear relaxation: (active clients x sites) to this power [p-median drawn]."""
PREPARE_BOUNDS = 1200
"""Bounds after which the tree starts over from better multipliers [p-median 900]."""
LONG_STEPS = 300
"""Subgradient steps when it does [p-median 900]."""

# branch_and_bound: reports
REPORT_EVERY = 0.1
"""Seconds between two reports, when the incumbent does not change."""

# p_median_descents: replica sets where no leader matters
DESCENT_PASSES = 150
"""Neighbourhoods evaluated in all [p-median 900]."""
PASSES_PER_REPLICA = 5
"""Neighbourhoods that one descent takes for each replica, about [p-median drawn]."""
DESCENT_SITES = 200
"""Sites among which descents choose, at least [p-median large]."""
SITES_PER_REPLICA = 4
"""Sites for each replica, when that is more [p-median large]."""
TRIED_SWAPS = 32
"""Best swaps of which the first that obeys the caps is taken [drawn networks with caps]."""
START_DRAWS = 20
"""Attempts to draw a start that obeys the caps [drawn networks with caps]."""

# linear_relaxation and relaxation_tree: p-medians with many replicas
SOLVER_SLICE = 0.25
"""Seconds that HiGHS runs before Python checks the clock and Ctrl-C; each further slice of one
programme is twice as long, because the simplex loses some of its way when it is stopped."""
VIOLATION = 1e-7
"""Relative violation from which a row is added [p-median drawn]."""
MANY_ROWS = 2000.0
"""Rows from which a pivot costs more for each of them, in proportion [p-median drawn]."""
RELAXATION_ROUNDS = 12
"""Most linear programmes for one bound; the root may have as many as it needs [p-median drawn]."""
PIVOT_WORK = 30.0
"""Work of a pivot of the simplex, per row [p-median drawn]."""

RELAXATION_ENUMERATED = 40
"""Completions up to which a leaf is enumerated [p-median drawn]."""
RELAXATION_BOUND_WORK = 8.0
"""Work of a bound in NumPy, per client and site [p-median drawn]."""

# kernel
SORT_CELLS = 50_000
"""Cells from which sorting whole numbers with the site in one integer pays [200 x 400]."""

# threshold_search: scenarios with thresholds
THRESHOLD_ROOT_STEPS = 80
"""Steps on the multipliers at a root, for limits and percentiles [tail]."""
THRESHOLD_STEPS = 12
"""Steps on the multipliers below a root, unless the caller says otherwise [tail]."""

# limits: budgets, limits on moves
LIMIT_SCALE = 5.0
"""Divisor of a function, in its limits, before it is weighed against the objective [limits]."""
LIMIT_ROWS = 3
"""Rows of measures with many of them that enter at once, at most [limits]."""

# loss_search: losses
LOSS_KICKS = 4
"""Kicks of two random swaps in a descent [losses]."""
LOSS_FLOOR_STEPS = 40
"""Steps on the multipliers of the floor of a site after losses [losses]."""

# percentiles and shares in time
LATE_LEADERS = 4
"""Leaders that get their tables at once, at first; twice as many each time [tail]."""
LATE_SCALE = 2.0
"""Divisor of the late scenario in the search for ties, in budgets [tail]."""
LATE_PATIENCE = 5.0
"""Seconds for the last deadline before the best plan; then an earlier one is asked for [tail]."""
