#!/bin/bash
# pytdigest 0.1.4: values that are equal become one cluster, and the quantiles lie on a line from one cluster to the next. RTTs in
# whole ms get a median that the host never had, and a p90 near the worst value.
#
# Guess before the run: of 98 samples of 10 ms and 2 of 1,000 ms the median and p90 are 10 ms, as the digest has room for all.
# Seen: 29.8 and 821.8 ms. With samples that differ by a millionth of a ms both are 10.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check pytdigest==0.1.4 numpy==2.4.6 pandas==3.1.1
cat > ask.py <<'PY'
import sys
from importlib.metadata import version

import numpy as np
from pytdigest import TDigest

equal = np.array([10.0] * 98 + [1000.0] * 2)
apart = equal + np.arange(100) * 1e-6
found = [[round(float(value), 1) for value in TDigest.compute(rtts).inverse_cdf([0.5, 0.9])] for rtts in (equal, apart)]
print(f"pytdigest {version('pytdigest')}: p50 and p90 of equal samples {found[0]}, of nearly equal ones {found[1]}")
sys.exit(0 if found == [[29.8, 821.8], [10.0, 10.0]] else "the behaviour has changed")
PY
env/bin/python ask.py
