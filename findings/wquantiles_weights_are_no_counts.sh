#!/bin/bash
# wquantiles 0.6: a weighted quantile lies on a line between the middles of the weights, so a value
# with 98 of 100 operations reaches its neighbour's value long before the 98th percentile, and a value
# of weight 0 still bends the line.
#
# Guess before the run: the quantile of values with whole weights is that of the values repeated.
# Seen: of 98 operations of 10 ms, one of 20 and one of 100, the median is 10.2 ms and the 90th
# percentile 18.3 ms; repeated values have 10 ms in both. With a value of 29 ms and weight 0 between 10
# and 30, the median is 29 ms; without it 20 ms.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check wquantiles==0.6 numpy==2.3.4
cat > ask.py <<'PY'
import sys
from importlib.metadata import version
import numpy as np
import wquantiles
print("wquantiles", version("wquantiles"))
ms, operations = np.array([10.0, 20, 100]), np.array([98, 1, 1])
for q in (0.5, 0.9):
    repeated = np.quantile(np.repeat(ms, operations), q)
    print(f"q {q}: weighted {wquantiles.quantile(ms, operations, q):.2f} ms, repeated {repeated:.2f} ms")
with_zero = wquantiles.quantile(np.array([10.0, 29, 30]), np.array([1.0, 0, 1]), 0.5)
without = wquantiles.quantile(np.array([10.0, 30]), np.array([1.0, 1]), 0.5)
print(f"median with a value of weight 0: {with_zero:.0f} ms, without it: {without:.0f} ms")
same = 18 < wquantiles.quantile(ms, operations, 0.9) < 19 and (with_zero, without) == (29, 20)
sys.exit(0 if same else "the behaviour has changed")
PY
env/bin/python ask.py
