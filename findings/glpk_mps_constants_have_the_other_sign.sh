#!/bin/bash
# GLPK 5.0 (swiglpk 5.0.13) writes and reads the constant of an objective in MPS files with the sign that no one else has: as
# the right-hand side of the objective's row itself, where the others have minus that. A plan of 4 with fixed costs of 10
# costs 14 in GLPK; from GLPK's own file all others say -6, and the other way round.
#
# Guess before the run: HiGHS reads from GLPK's file the constant 10 that GLPK was given.
# Seen: -6 by HiGHS 1.16.0, SCIP (pyscipopt 6.3.0) and OR-Tools 9.15, 14 by GLPK.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check swiglpk==5.0.13 highspy==1.16.0 pyscipopt==6.3.0 ortools==9.15.6755
cat > ask.py <<'PY'
import sys
import highspy
import pyscipopt
import swiglpk as glpk
from ortools.linear_solver.python import model_builder
glpk.glp_term_out(0)
problem = glpk.glp_create_prob()
glpk.glp_add_cols(problem, 1)
glpk.glp_set_col_name(problem, 1, "x")
glpk.glp_set_col_bnds(problem, 1, glpk.GLP_LO, 4, 0)
glpk.glp_set_obj_coef(problem, 0, 10)
glpk.glp_set_obj_coef(problem, 1, 1)
glpk.glp_add_rows(problem, 1)
glpk.glp_set_row_name(problem, 1, "c1")
glpk.glp_set_row_bnds(problem, 1, glpk.GLP_UP, 0, 9)
rows, columns, values = glpk.intArray(2), glpk.intArray(2), glpk.doubleArray(2)
rows[1], columns[1], values[1] = 1, 1, 1
glpk.glp_load_matrix(problem, 1, rows, columns, values)
glpk.glp_write_mps(problem, glpk.GLP_MPS_FILE, None, "model.mps")
again = glpk.glp_create_prob()
glpk.glp_read_mps(again, glpk.GLP_MPS_FILE, None, "model.mps")
glpk.glp_simplex(again, None)
highs = highspy.Highs()
highs.silent()
highs.readModel("model.mps")
highs.run()
scip = pyscipopt.Model()
scip.hideOutput()
scip.readProblem("model.mps")
scip.optimize()
model = model_builder.Model()
model.import_from_mps_file("model.mps")
ortools = model_builder.Solver("glop")
ortools.solve(model)
found = [glpk.glp_get_obj_val(again), highs.getObjectiveValue(), scip.getObjVal(), ortools.objective_value]
print(f"GLPK {glpk.glp_version()}: x + 10 with x >= 4, by", dict(zip(["GLPK", "HiGHS", "SCIP", "OR-Tools"], found)))
sys.exit(0 if found == [14, -6, -6, -6] else "the behaviour has changed")
PY
env/bin/python ask.py
