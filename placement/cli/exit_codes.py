"""Exit codes of the command line."""

FOUND = 0
"""The answer was found; for a plan, its gap says how good it is proven to be."""

BAD_INPUT = 1
"""An input is wrong, or a method does not support it; nothing was written."""

INFEASIBLE = 2
"""Proven that no plan obeys all constraints, or an evaluated configuration breaks one."""

NOTHING = 3
"""A limit was reached before any plan was found or ruled out."""

SOLVER = 4
"""A solver failed or contradicted the evaluator: a defect, not the user's mistake."""

INTERRUPTED = 130
"""Ctrl-C; the best result so far was printed and written (128 + SIGINT, as shells report it)."""

BROKEN_PIPE = 141
"""The reader of the output went away (128 + SIGPIPE)."""
