#!/bin/bash
# HiGHS 1.16.0: writing a model as an LP file changes the model. Where one name has a character that LP files do not
# allow, as the hyphens of eu-west-1, all columns are called c0, c1, … from then on, in the solver too. The solution
# file that is written after it has these names, and does not fit the MPS file that was written before it.
#
# Guess before the run: the LP file has other names or is refused, and the model keeps its own.
# Seen: writeModel("model.lp") returns a warning, getColName says c0 for eu-west-1 and c1 for tokyo, and readSolution
# of the later solution file is an error. Writing the MPS file changes no name.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --target lib highspy==1.16.0 numpy==2.4.6
cat > ask.py << 'PY'
import sys
import highspy
def new():
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    return highs
highs = new()
west, tokyo = highs.addVariable(0, 5, name="eu-west-1"), highs.addVariable(0, 5, name="tokyo")
highs.addConstr(west + tokyo >= 8, name="cover")
highs.minimize(west + 2 * tokyo)
found = []
for file in "model.mps", "model.lp":
    status = highs.writeModel(file)
    highs.writeSolution(file + ".solution", 0)
    names = [highs.getColName(column)[1] for column in range(2)]
    other = new()
    other.readModel("model.mps")
    reads = other.readSolution(file + ".solution", 0)
    found.append((status.name, names, reads.name))
    print(f"HiGHS {highs.version()}, after {file}: {status.name}, columns {names}; its solution for the MPS file: {reads.name}")
good = [("kOk", ["eu-west-1", "tokyo"], "kOk"), ("kWarning", ["c0", "c1"], "kError")]
sys.exit(0 if found == good else f"the behaviour has changed: {found}")
PY
PYTHONPATH=lib python3 ask.py
