#!/bin/bash
# tdigest 0.5.2.2: where values repeat, percentiles are drawn as a line between two
# values far away from the rank that is asked for. Of 98 operations of 10 ms and two of 1,000 ms it says
# a median of 29.8 ms and a p90 of 821.8 ms. fastdigest 0.12.0, of the same method, says 10 and 10.
#
# Guess before the run: a t-digest has p99 within 1 %, and the largest value as p100.
# Seen: p50 29.8, p90 821.8, p97 960.4 by tdigest; 10, 10, 10 by fastdigest.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --target lib tdigest==0.5.2.2 fastdigest==0.12.0
cat > ask.py << 'PY'
import sys
from importlib.metadata import version
import fastdigest
import tdigest
values = [10.0] * 98 + [1000.0] * 2
first = tdigest.TDigest()
for value in values:
    first.update(value)
second = fastdigest.TDigest.from_values(values)
ranks = (0.5, 0.9, 0.97)
found = {"tdigest": [first.percentile(100 * p) for p in ranks],
         "fastdigest": [second.quantile(p) for p in ranks]}
found = {name: [round(float(one), 1) for one in ms] for name, ms in found.items()}
for name, ms in found.items():
    print(f"{name} {version(name)}: p50, p90, p97 are {ms} ms")
wide = [29.8, 821.8, 960.4]
sys.exit(0 if list(found.values()) == [wide, [10, 10, 10]] else "the behaviour has changed")
PY
PYTHONPATH=lib python3 ask.py
