#!/bin/bash
# MPS: the bound MI alone, "the lower bound is minus infinity", leaves the upper bound open in HiGHS 1.16.0, SCIP (pyscipopt 6.3.0)
# and CBC. For PuLP 3.3.2 it makes 0 the upper bound, and for GLPK 5.0 (swiglpk 5.0.13) a whole column ends at 1. One file
# has three optima, and each reader calls its own optimal.
#
# Guess before the run: x may be anything that the rows allow in all readers, whole or not.
# Seen: the largest x with x >= -5 and x <= 7 is 7 by HiGHS, SCIP and CBC, 0 by PuLP and, where x is whole, 1 by GLPK.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --target lib \
  pulp==3.3.2 highspy==1.16.0 pyscipopt==6.3.0 swiglpk==5.0.13
cat > ask.py <<'PY'
import pathlib
import subprocess
import sys

import highspy
import pulp
import pyscipopt
import swiglpk as glpk

WHOLE = "    M{}        'MARKER'                 'INT{}'\n"
TEXT = """NAME          NET
ROWS
 N  COST
 G  LEAST
 L  MOST
COLUMNS
{}    X         COST                -1   LEAST                1
    X         MOST                 1
{}RHS
    RHS       LEAST               -5   MOST                 7
BOUNDS
 MI BND       X
ENDATA
"""
pathlib.Path("any.mps").write_text(TEXT.format("", ""))
pathlib.Path("whole.mps").write_text(TEXT.format(WHOLE.format(1, "ORG"), WHOLE.format(2, "END")))


def ask_highs(path):
    solver = highspy.Highs()
    solver.silent()
    solver.readModel(path)
    solver.run()
    return solver.getSolution().col_value[0]


def ask_scip(path):
    model = pyscipopt.Model()
    model.hideOutput()
    model.readProblem(path)
    model.optimize()
    return model.getVal(model.getVars()[0])


def ask_cbc(path):
    program = pulp.PULP_CBC_CMD().path
    subprocess.run([program, path, "-solve", "-solution", "answer"], check=True, capture_output=True)
    return -float(pathlib.Path("answer").read_text().splitlines()[0].split()[-1])


def ask_glpk(path):
    glpk.glp_term_out(glpk.GLP_OFF)
    model = glpk.glp_create_prob()
    glpk.glp_read_mps(model, glpk.GLP_MPS_FILE, None, path)
    how = glpk.glp_iocp()
    glpk.glp_init_iocp(how)
    how.presolve = glpk.GLP_ON
    glpk.glp_intopt(model, how)
    return glpk.glp_mip_col_val(model, 1)


def ask_pulp(path):
    variables, model = pulp.LpProblem.fromMPS(path)
    model.solve(pulp.PULP_CBC_CMD(msg=False))
    return variables["X"].value()


found = {}
for path in ("any.mps", "whole.mps"):
    found[path] = [float(ask(path)) for ask in (ask_highs, ask_scip, ask_cbc, ask_glpk, ask_pulp)]
    print(path, dict(zip(("HiGHS", "SCIP", "CBC", "GLPK", "PuLP"), found[path], strict=True)))
sys.exit(0 if found == {"any.mps": [7, 7, 7, 7, 0], "whole.mps": [7, 7, 7, 1, 0]} else "the behaviour has changed")
PY
PYTHONPATH=lib python3 ask.py
