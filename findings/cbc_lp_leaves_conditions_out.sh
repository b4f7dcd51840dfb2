#!/bin/bash
# CBC (of PuLP 3.3.2) leaves parts of an LP file out, without a word: the constant of the objective, and the condition of
# an indicator row. "b = 1 -> x <= 1" restricts nothing, and the plan that breaks it is optimal.
#
# Guess before the run: the constant counts (as CBC counts it in an MPS file); an indicator is kept, or the file is refused.
# Seen: 4 for a cost of 14 with a constant of 10; 20 with x = 4 where SCIP (pyscipopt 6.3.0) finds 14 with x = 1. With the
# indicator CBC has a column more than the file, and calls all of them x0, x1, … HiGHS 1.16.0 counts the constant and refuses
# the indicator; GLPK (swiglpk 5.0.13) refuses both.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check pulp==3.3.2 pyscipopt==6.3.0 highspy==1.16.0 swiglpk==5.0.13
cat > ask.py <<'PY'
import pathlib
import subprocess
import sys

import highspy
import pulp
import pyscipopt
import swiglpk as glpk

pathlib.Path("constant.lp").write_text("""Minimize
 cost: 2 x + 3 y + 10
Subject To
 cover: x + y >= 2
End
""")
pathlib.Path("indicator.lp").write_text("""Maximize
 value: 2 x + 3 y
Subject To
 room: x + y <= 8
 rule: b = 1 -> x <= 1
 chosen: b >= 1
Bounds
 x <= 4
 y <= 4
Binary
 b
End
""")


def ask_cbc(path):
    program = pulp.PULP_CBC_CMD().path
    subprocess.run([program, path, "-solve", "-solution", "answer"], check=True, capture_output=True)
    head, *columns = pathlib.Path("answer").read_text().splitlines()
    return head.split()[0], float(head.split()[-1]), {line.split()[1]: float(line.split()[2]) for line in columns if line}


def ask_scip(path):
    model = pyscipopt.Model()
    model.hideOutput()
    model.readProblem(path)
    model.optimize()
    return model.getStatus(), model.getObjVal()


def ask_highs(path):
    solver = highspy.Highs()
    solver.silent()
    if solver.readModel(path) == highspy.HighsStatus.kError:
        return "refused"
    solver.run()
    return solver.modelStatusToString(solver.getModelStatus()), solver.getObjectiveValue()


def ask_glpk(path):
    glpk.glp_term_out(glpk.GLP_OFF)
    return "refused" if glpk.glp_read_lp(glpk.glp_create_prob(), None, path) else "read"


found = {}
for name in ("constant", "indicator"):
    found[name] = [ask(f"{name}.lp") for ask in (ask_cbc, ask_scip, ask_highs, ask_glpk)]
    print(f"{name}:", "CBC {}; SCIP {}; HiGHS {}; GLPK {}".format(*found[name]))
cbc_constant, *others_constant = found["constant"]
cbc_indicator, *others_indicator = found["indicator"]
same = cbc_constant[:2] == ("Optimal", 4.0) and cbc_indicator[:2] == ("Optimal", 20.0) and len(cbc_indicator[2]) == 4
others = others_constant == [("optimal", 14.0), ("Optimal", 14.0), "refused"]
sys.exit(0 if same and others and others_indicator == [("optimal", 14.0), "refused", "refused"] else "the behaviour has changed")
PY
env/bin/python ask.py
