#!/bin/bash
# scipy 1.17.1: poisson_binom, the number of failures among machines that fail each with its own probability, has no small tails.
# sf is 1 minus the sum of the others, so the chance that a quorum is lost is rounded to a multiple of 10^-16. binom.sf of
# the same machines, all alike, is right, and so is pmf of poisson_binom.
#
# Guess before the run: three or more of five machines, 10^-6 each, fail with 10^-17 by both, to many digits.
# Seen: of five machines with 10^-6, 10^-7 and 10^-8 the sf of two failures is 1.1e-16, 0 and 1.1e-16, where 1.0e-17,
# 1.0e-20 and 1.0e-23 are right: the worst machines do not come out as the worst, and the better ones never fail or too often.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --target lib scipy==1.17.1 numpy==2.4.6
cat > ask.py <<'PY'
import sys

import scipy
from scipy import stats

found = []
for p in (1e-6, 1e-7, 1e-8):
    each = stats.poisson_binom([p] * 5)
    tail, summed, same = each.sf(2), sum(each.pmf(k) for k in (3, 4, 5)), stats.binom.sf(2, 5, p)
    found.append((tail / same, summed / same))
    print(f"scipy {scipy.__version__}, five of {p:g}: sf(2) {tail:.2g}, pmf(3) + pmf(4) + pmf(5) {summed:.6g}, binom.sf {same:.6g}")
wrong = all(not 0.5 < ratio < 2 for ratio, _ in found)
right = all(abs(ratio - 1) < 1e-9 for _, ratio in found)
sys.exit(0 if wrong and right else "the behaviour has changed")
PY
PYTHONPATH=lib python3 ask.py
