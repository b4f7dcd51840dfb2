#!/bin/bash
# linopy 0.10.1: two variables over the same sites in another order meet by place, not by name, while numbers meet by name. In
# "served at a site only if it is open" the site b may then be served because c is open. A FutureWarning is all that tells.
#
# Guess before the run: by name, as numbers do, and as two arrays do in xarray, on which linopy is built.
# Seen: with served over a, b, c and opened over c, a, b, served <= opened holds served a to opened c. The client goes to a for
# 1 ms, which is closed, and c is open for nothing; sorted alike, the plan opens a. A price by site in the order c, a, b is right.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check linopy==0.10.1 highspy==1.16.0 xarray==2026.9.0 pandas==3.1.1 numpy==2.4.6
cat > ask.py <<'PY'
import sys
import warnings

import linopy
import pandas as pd
import xarray as xr

warnings.simplefilter("ignore")


def plan(order):
    model = linopy.Model()
    served = model.add_variables(binary=True, coords=[pd.Index(list("abc"), name="site")], name="served")
    opened = model.add_variables(binary=True, coords=[pd.Index(order, name="site")], name="opened")
    rtt = xr.DataArray([9.0, 1.0, 5.0], coords={"site": list("cab")})
    model.add_constraints(served.sum() == 1)
    model.add_constraints(opened.sum() == 1)
    model.add_constraints(served <= opened)
    model.add_objective((served * rtt).sum())
    model.solve("highs", io_api="direct", output_flag=False)
    chosen = [[str(site) for site in part.site.values[part.values > 0.5]] for part in (served.solution, opened.solution)]
    return model.objective.value, *chosen


found = {order: plan(list(order)) for order in ("abc", "cab")}
for order, (rtt, served, opened) in found.items():
    print(f"linopy {linopy.__version__}, opened over {order}: served at {served}, open {opened}, {rtt:.0f} ms")
sys.exit(0 if found == {"abc": (1, ["a"], ["a"]), "cab": (1, ["a"], ["c"])} else "the behaviour has changed")
PY
env/bin/python ask.py
