#!/bin/bash
# pytoulbar2 1.4.0.1 (cost function networks): a network rounds all costs to whole numbers unless `resolution` says how many
# digits count; the default is 0. Prices of 0.40 and 0.30 are both 0, and the dear site is "optimal" at 0.
#
# Guess before the run: costs are decimal numbers ("decimal cost" in the help), so the cheap site is the optimum, at 0.3.
# Seen: prices (0.4, 0.3) give site 0 at 0.0, prices (10.5, 10.4) site 0 at 10.0, with no warning. With resolution=2 the
# answers are site 1 at 0.3 and at 10.4.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --target lib pytoulbar2==1.4.0.1
cat > ask.py <<'PY'
import sys
import warnings

import pytoulbar2

warnings.simplefilter("error")
found = []
for digits in (0, 2):
    for prices in ([0.4, 0.3], [10.5, 10.4]):
        network = pytoulbar2.CFN(1000, resolution=digits) if digits else pytoulbar2.CFN(1000)
        network.AddVariable("site", ["a", "b"])
        network.AddFunction(["site"], prices)
        (site,), cost, _ = network.Solve()
        found.append((site, cost))
        print(f"prices {prices}, {'resolution 2' if digits else 'default'}: site {site} at {cost}")
sys.exit(0 if found == [(0, 0.0), (0, 10.0), (1, 0.3), (1, 10.4)] else "the behaviour has changed")
PY
PYTHONPATH=lib python3 ask.py
