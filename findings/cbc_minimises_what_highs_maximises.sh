#!/bin/bash
# CBC (of PuLP 3.3.2) does not heed the section OBJSENSE of an MPS file: a model that HiGHS 1.16.0 wrote to be
# maximised is minimised, and CBC calls the worst plan optimal. The LP file of the same model goes wrong in
# another way: HiGHS writes empty sections (bin, semi), CBC takes the words bin and gen for columns, and
# the column after gen loses its being whole. Neither says a word.
#
# Guess before the run: CBC finds the optimum of HiGHS, 23.5, from the MPS file. The LP file was tried after that.
# Seen: -1 from the MPS file; from the LP file 24, at x = 12.5, which is no whole number, and columns bin and gen.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --target lib pulp==3.3.2 highspy==1.16.0 numpy==2.4.6
cat > ask.py << 'PY'
import subprocess
import sys
import highspy
import pulp
highs = highspy.Highs()
highs.setOptionValue("output_flag", False)
x = highs.addVariable(0, highspy.kHighsInf, name="x", type=highspy.HighsVarType.kInteger)
y = highs.addVariable(-5, 2, name="y")
highs.addConstr(x + y <= 7.5, name="c1")
highs.maximize(2 * x + y + 4)
found = [highs.getObjectiveValue()]
print(f"HiGHS {highs.version()}: {found[0]}")
for name in "model.mps", "model.lp":
    highs.writeModel(name)
    subprocess.run([pulp.PULP_CBC_CMD(msg=False).path, name, "solve", "solution", "found"], capture_output=True)
    first, *lines = open("found").read().splitlines()
    found += [float(first.split()[-1]), sorted(line.split()[1] for line in lines)]
    print(f"CBC of PuLP {pulp.__version__}, {name}: {first}; columns {found[-1]}")
good = [23.5, -1, ["x", "y"], 24, ["bin", "gen", "x", "y"]]
sys.exit(0 if found == good else f"the behaviour has changed: {found}")
PY
PYTHONPATH=lib python3 ask.py
