#!/bin/bash
# SCIP (pyscipopt 6.3.0): in an LP file the row that stands just before the section "User Cuts" becomes a user
# cut itself, which no plan has to keep. SCIP calls a plan optimal that breaks the row.
#
# Guess before the run: a cut that follows from the other rows changes nothing but the time.
# Seen: with 2x + 2y >= 3 in whole numbers the least x + y is 2; with the cut x + y >= 2 it is "optimal" at 0.
# With one row more between the two, that row is lost instead, and the optimum is 2 again.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --target lib pyscipopt==6.3.0 numpy==2.4.6
cat > ask.py << 'PY'
import sys
import pyscipopt
START = "Minimize\n obj: x + y\nSubject To\n c: 2 x + 2 y >= 3\n"
MORE = " d: x + y <= 9\n"
CUT = "User Cuts\n cut: x + y >= 2\n"
END = "Bounds\n x <= 5\n y <= 5\nGenerals\n x y\nEnd\n"
found = []
for name, text in ("no cut", START + END), ("cut", START + CUT + END), ("cut after row d", START + MORE + CUT + END):
    with open("model.lp", "w") as file:
        file.write(text)
    model = pyscipopt.Model()
    model.hideOutput()
    model.readProblem("model.lp")
    checked = [row.name for row in model.getConss() if row.isChecked()]
    model.optimize()
    found.append((model.getStatus(), model.getObjVal(), checked))
    print(f"pyscipopt {pyscipopt.__version__}, {name}: {found[-1][0]} {found[-1][1]}, rows that are checked: {checked}")
good = [("optimal", 2, ["c"]), ("optimal", 0, []), ("optimal", 2, ["c"])]
sys.exit(0 if found == good else f"the behaviour has changed: {found}")
PY
PYTHONPATH=lib python3 ask.py
