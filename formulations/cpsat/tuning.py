"""Tuning constants of the CP-SAT models, in one table.

None of them matters for correctness: they decide how long a search takes, and which of several
plans it finds first. The brackets name what a value was measured on: a question set of ``python -m
benchmarks run tuning``. ``[no study]`` marks a value that was chosen by hand. Constants on which
correctness or a file format depends stand where they are used.
"""

START_SHARE = 0.2
"""Part of the time limit, at most, that goes to the start [no study]."""
LOSS_START_SHARE = 0.2
"""The same for objectives about losses [no study]."""
LOSS_FLOOR_SHARE = 0.05
"""Part of the time left that the bound of one leader after losses may take [no study]."""
