#!/bin/bash
# hdrhistogram 0.10.3 (python): a value above the range of the histogram is left out without an error, so
# percentiles and the maximum are those of the rest. 98 operations of 10 ms and two that met the loss
# of a leader, 70 and 90 s, have a p99 and a maximum of 10 ms. (The original in Java throws an exception.)
#
# Guess before the run: such a value raises, or counts in the highest bucket, so that p99 is >= 60 s.
# Seen: record_value returns False; 98 values are counted, p99 10 ms, maximum 10 ms. Nor is the limit the
# one that was asked for: with 60,000 as the highest value 65,535 is taken and 65,536 is not.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check hdrhistogram==0.10.3
cat > ask.py << 'PY'
import sys
from importlib.metadata import version
from hdrh.histogram import HdrHistogram
histogram = HdrHistogram(1, 60_000, 2)
for ms in [10] * 98 + [70_000, 90_000]:
    histogram.record_value(ms)
found = (histogram.get_total_count(), histogram.get_value_at_percentile(99), histogram.get_max_value())
limit = [HdrHistogram(1, 60_000, 2).record_value(ms) for ms in (65_535, 65_536)]
print("hdrhistogram", version("hdrhistogram"))
print("100 values: %d counted, p99 %d ms, maximum %d ms" % found)
print(f"65,535 taken: {limit[0]}; 65,536 taken: {limit[1]}")
sys.exit(0 if (found, limit) == ((98, 10, 10), [True, False]) else "the behaviour has changed")
PY
env/bin/python ask.py
