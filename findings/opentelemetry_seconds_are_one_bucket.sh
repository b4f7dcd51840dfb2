#!/bin/bash
# OpenTelemetry SDK 1.45.2 (Python): the bounds of a histogram are 0, 5, 10, 25, …, 10000 whatever its unit, made for
# milliseconds. The semantic conventions ask for durations in seconds, and then all requests below 5 s are in one
# bucket: every percentile that is read from the buckets lies on one line from 0 to 5 s.
#
# Guess before the run: a histogram with unit="s" has bounds below a second.
# Seen: requests of 3, 12, 200 and 1500 ms, recorded in seconds, are four counts in the bucket above 0 up to 5.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check opentelemetry-sdk==1.45.2
cat > ask.py <<'PY'
import sys
from importlib.metadata import version
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
reader = InMemoryMetricReader()
histogram = MeterProvider([reader]).get_meter("ask").create_histogram("http.server.request.duration", unit="s")
for seconds in 0.003, 0.012, 0.2, 1.5:
    histogram.record(seconds)
(point,) = reader.get_metrics_data().resource_metrics[0].scope_metrics[0].metrics[0].data.data_points
used = {f"up to {bound}": count for bound, count in zip(point.explicit_bounds, point.bucket_counts) if count}
print("opentelemetry-sdk", version("opentelemetry-sdk"), "bounds", *map(int, point.explicit_bounds), "counts", used)
sys.exit(0 if used == {"up to 5.0": 4} else "the behaviour has changed")
PY
env/bin/python ask.py
