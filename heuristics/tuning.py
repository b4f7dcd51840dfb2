"""Tuning constants of the heuristics, in one table.

None of them matters for correctness: they decide how long a search takes, and which of several
plans it finds first. The brackets name the questions that a value was measured on. ``[no study]``
marks a value that was chosen by hand. Constants on which correctness or a file format depends stand
where they are used.
"""

# local_search
GROWN_LEADERS = 4
"""Leaders that get new sets in a round [local-search]."""
GROWN_COPIES = 8
"""New sets of each of these leaders [local-search]."""
GROWN_AMONG = 6
"""Best additions that a growing set draws from [local-search]."""
SHAKES = (3, 8)
"""Random moves of a shaken copy, in turn [local-search]."""
STARTS_BLOCK = 4_000_000
"""Elements of the largest temporary: 32 MB [no study]."""
REMEMBERED_DESCENTS = 200_000
"""Pairs of a leader and a set whose descent is remembered: some 50 MB [no study]."""
BOUNDS_BLOCK = 200_000
"""Summands of the bounds of leaders that are handled at once [no study]."""
DESCENT_BLOCK = 2_000_000
"""Elements of the largest temporary: 16 MB [no study]."""
EXACT_MOVES = 8
"""Moves of one pair valued exactly in one go [local-search]."""
NEIGHBOUR_SHAKES = 3
"""Random moves of a shaken plan where moves are valued one by one: losses, waits [no study]."""
NORMAL_SHARE = 0.3
"""Part of a time limit that the plan for normal operation may use [no study]."""

# qk
QUORUM_BLOCK = 100_000
"""Summands of the leaders that are handled at once: they should stay in cache [no study]."""
