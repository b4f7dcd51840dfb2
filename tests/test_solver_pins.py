"""highspy and ortools live in one process, in both import orders (pins: see pyproject.toml)."""

import pytest

from formulations.solvers.highs import silent_highs
from tests.cli.command import output_of

HIGHS = """
import highspy
h = highspy.Highs()
h.setOptionValue("output_flag", False)
x, y = h.addBinary(), h.addBinary()
h.addConstr(x + y <= 1)
h.maximize(2 * x + 3 * y)
assert h.getModelStatus() == highspy.HighsModelStatus.kOptimal
assert abs(h.getInfo().objective_function_value - 3) < 1e-9
"""

ORTOOLS = """
from ortools.sat.python import cp_model
m = cp_model.CpModel()
a, b = m.new_bool_var("a"), m.new_bool_var("b")
m.add_at_most_one(a, b)
m.maximize(2 * a + 3 * b)
s = cp_model.CpSolver()
assert s.solve(m) == cp_model.OPTIMAL
assert s.objective_value == 3
"""


@pytest.mark.parametrize(
    "script",
    [
        HIGHS + ORTOOLS,
        ORTOOLS + HIGHS,
        "import highspy\nimport ortools.sat.python.cp_model\n" + ORTOOLS + HIGHS,
    ],
    ids=["highspy first", "ortools first", "both imported, then both solve"],
)
def test_both_solvers_solve_in_one_process(script):
    output_of(script)


def test_highs_prints_nothing(capfd):
    """From 1.16 on highspy prints a banner on stdout, where JSON stands."""
    solver = silent_highs()
    solver.run()
    assert capfd.readouterr().out == ""
