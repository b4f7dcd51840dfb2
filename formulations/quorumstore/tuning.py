"""Tuning constants of the methods for quorum stores, in one table.

None of them matters for correctness: they decide how long a search takes, and which of several
plans it finds first. The brackets name what a value was measured on: a question set of ``python -m
benchmarks run tuning``. ``[no study]`` marks a value that was chosen by hand. Constants on which
correctness or a file format depends stand where they are used.
"""

# one_key
ENUMERABLE_SETS = 2_000_000
"""Replica sets up to which enumeration is the automatic choice: a few seconds for one key
[no study]."""

# enumeration
REMEMBERED_SETS = 12
"""Recently optimal sets remembered per size, to start the next key from a good incumbent
[quorumstore]."""
PREFIX_BLOCK = 200_000
"""Prefixes grown at a time in NumPy; their arrays then take some 20 MB [quorumstore]."""
SURVIVOR_CHUNK = 2048
"""Survivors gathered at a time: about 2 MB of ranks at 27 sites and N = 5 [quorumstore]."""
SAMPLED_SURVIVORS = 512
"""Survivors above which a sample of them is tried first, to lower the incumbent [quorumstore]."""
LANE_CLIENTS = 14
"""Most clients in a lane: the sums over all its subsets are one table of 128 kB [quorumstore]."""

# keys: a table of many keys
REMEMBERED_KEYS = 200_000
"""Distinct demands whose configuration is remembered within a run [no study]."""

# covering: mixed-integer programs
ONE_SHOT_COLUMNS = 60_000
"""Most binaries of the assignment model; a larger one is refused [no study]."""
SWAP_BATCH = 2_000
"""Sets times scenarios evaluated at once [no study]."""
