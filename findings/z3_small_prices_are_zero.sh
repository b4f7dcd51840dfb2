#!/bin/bash
# z3-solver 5.4.1.0 (Python): Optimize.add_soft writes a weight that is a float with six digits after the point, and hands over
# that text. Prices below 5 x 10^-7, such as those of a byte of egress, become 0, and others are rounded, without a word. The
# plan that z3 calls the best one may then be any.
#
# Guess before the run: the weight counts as given; a float of Python is a fraction, which z3 can hold exactly.
# Seen: "site x or site y" at the prices 4e-7 and 1e-7 takes x, with an objective of 0. The same weights as texts take
# y, with 1/10000000. The weight 1.25e-6 is 1/1000000.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --target lib z3-solver==5.4.1.0
cat > ask.py <<'PY'
import sys

import z3

x, y = z3.Bools("x y")
found = []
for prices in ((4e-7, 1e-7), ("0.0000004", "0.0000001"), (1.25e-6, 9.0)):
    search = z3.Optimize()
    search.add(z3.Or(x, y))
    cost = search.add_soft(z3.Not(x), prices[0])
    search.add_soft(z3.Not(y), prices[1])
    search.check()
    chosen = [name for name, site in (("x", x), ("y", y)) if z3.is_true(search.model()[site])]
    found.append((chosen, str(cost.value())))
    print(f"z3 {z3.get_version_string()}: prices {prices}, chosen {chosen}, objective {found[-1][1]}")
(_, zero), exact, rounded = found
same = zero == "0" and exact == (["y"], "1/10000000") and rounded == (["x"], "1/1000000")
sys.exit(0 if same else "the behaviour has changed")
PY
PYTHONPATH=lib python3 ask.py
