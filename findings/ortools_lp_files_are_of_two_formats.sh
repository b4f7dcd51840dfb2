#!/bin/bash
# OR-Tools 9.15: export_to_lp_string of ModelBuilder writes CPLEX's LP format, import_from_lp_string reads
# lp_solve's. It does not read what it wrote, nor an LP file of HiGHS, SCIP, PuLP or Pyomo. The MPS pair fits.
#
# Guess before the run: OR-Tools reads the LP files that the other solvers read.
# Seen: import_from_lp_string returns False for its own text, and True for the same model in lp_solve's format.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --no-warn-conflicts --target lib ortools==9.15.6755
cat > ask.py << 'PY'
import sys
from importlib.metadata import version
from ortools.linear_solver.python import model_builder
model = model_builder.Model()
x, y = model.new_int_var(0, 3, "x"), model.new_num_var(0, 5, "y")
model.add(x + y <= 7.5)
model.maximize(2 * x + y)
texts = {"its own LP": model.export_to_lp_string(), "lp_solve's LP": "max: 2 x + y;\nx + y <= 7.5;\nx <= 3;\ny <= 5;\nint x;\n"}
found = [model_builder.Model().import_from_lp_string(text) for text in texts.values()]
found.append(model_builder.Model().import_from_mps_string(model.export_to_mps_string()))
print("OR-Tools", version("ortools"), dict(zip([*texts, "its own MPS"], found)))
sys.exit(0 if found == [False, True, True] else "the behaviour has changed")
PY
PYTHONPATH=lib python3 ask.py
