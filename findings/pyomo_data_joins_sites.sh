#!/bin/bash
# pyomo 6.10.1 reads a name that looks like a number as a number, in its data files and in CSV files:
# the sites 01 and 1 become one site, 1e3 and 1000 another. The cost that stands last wins, without a
# word.
#
# Guess before the run: the names in a column "site" stay the texts that they are, or two equal ones
# are refused.
# Seen: four sites with costs 5, 7, 9 and 11 become two with costs 7 and 11, from either file.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check pyomo==6.10.1
cat > ask.py <<'PY'
import sys
from importlib.metadata import version
import pyomo.environ as pyo
print("pyomo", version("pyomo"))
rows = {"01": 5, "1": 7, "1e3": 9, "1000": 11}
with open("sites.csv", "w") as file:
    file.write("site,cost\n" + "".join(f"{site},{cost}\n" for site, cost in rows.items()))
with open("sites.dat", "w") as file:
    file.write("param: SITES: cost :=\n" + "".join(f"{site} {cost}\n" for site, cost in rows.items()) + ";")
found = []
for name in ("sites.csv", "sites.dat"):
    model = pyo.AbstractModel()
    model.SITES = pyo.Set()
    model.cost = pyo.Param(model.SITES)
    data = pyo.DataPortal()
    if name.endswith("csv"):
        data.load(filename=name, index=model.SITES, param=model.cost, model=model)
    else:
        data.load(filename=name, model=model)
    instance = model.create_instance(data)
    found.append({site: instance.cost[site] for site in instance.SITES})
    print(name, found[-1])
sys.exit(0 if found == [{1: 7, 1000: 11}] * 2 else "the behaviour has changed")
PY
env/bin/python ask.py 2> log || { cat log; exit 1; }
