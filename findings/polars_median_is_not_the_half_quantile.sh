#!/bin/bash
# polars 2.1.0: quantile(0.5) is not median(). A median is the mean of the two values in the middle; a quantile is, by
# default, the nearest of the values (in the cases below the larger of two that are equally near).
#
# Guess before the run: quantile(0.5) == median(), as in NumPy, pandas, R and Excel, with linear interpolation.
# Seen: of 10, 20, 30 and 40 ms the median is 25 and the quantile 0.5 is 30; of 10 and 20 ms 15 and 20. The 95th
# percentile of 10, 20, …, 100 ms is 100 (95.5 by NumPy).
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check polars==2.1.0
cat > ask.py <<'PY'
import sys
import polars
print("polars", polars.__version__)
seen = []
for values in [10.0, 20, 30, 40], [10.0, 20], [10.0 * i for i in range(1, 11)]:
    column = polars.Series(values)
    seen.append((column.median(), column.quantile(0.5), column.quantile(0.95)))
    print(f"{len(values):2} values, 10 ms apart: median {seen[-1][0]}, quantile 0.5 {seen[-1][1]}, 0.95 {seen[-1][2]}")
sys.exit(0 if seen == [(25, 30, 40), (15, 20, 20), (55, 60, 100)] else "the behaviour has changed")
PY
env/bin/python ask.py
