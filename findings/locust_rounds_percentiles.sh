#!/bin/bash
# locust 2.47.0 keeps response times by two digits above 100 ms, so a percentile may be above the
# largest response time, or 5 % below the least; least, mean and largest are exact.
#
# Guess before the run: 100 responses of 147 ms have a 99th percentile of 147 ms.
# Seen: 150 ms, where least, mean and largest are 147 ms; 144 ms becomes 140 ms, and 1,449 ms 1,400 ms.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check locust==2.47.0
cat > ask.py <<'PY'
import sys
from importlib.metadata import version
from locust.stats import RequestStats
print("locust", version("locust"))
found = []
for ms in (94, 147, 144, 1449):
    stats = RequestStats()
    for _ in range(100):
        stats.log_request("GET", "/", ms, 0)
    total = stats.total
    found.append(total.get_response_time_percentile(0.99))
    print(f"100 responses of {ms} ms: p99 {found[-1]}, least {total.min_response_time}, "
          f"mean {total.avg_response_time:.0f}, largest {total.max_response_time}")
sys.exit(0 if found == [94, 150, 140, 1400] else "the behaviour has changed")
PY
env/bin/python ask.py
