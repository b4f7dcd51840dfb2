#!/bin/bash
# Prometheus clients write the bound of one bucket as different texts: "1.0" by Python (prometheus-client 0.23.1), "1" by
# JavaScript (prom-client 15.1.3) and Go (client_golang 1.23.2). The bound is a label, and labels are compared as
# texts: sum by (le) over services in two languages has two series for each whole bound, each with a part of the
# requests, and a quantile of the sum is not that of all requests.
#
# Guess before the run: one exposition format, so one text for one number.
# Seen: le="0.1", le="1.0", le="10.0" by Python, le="0.1", le="1", le="10" by the two others.
#
# Needs Python, pip, Node.js, npm, Go and the Go module proxy.
set -euo pipefail
T=$(mktemp -d)
trap 'chmod -R u+w "$T"; rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check prometheus-client==0.23.1
npm install --silent --no-fund --no-audit prom-client@15.1.3 > log 2>&1 || { cat log; exit 2; }
cat > ask.py <<'PY'
from prometheus_client import CollectorRegistry, Histogram, generate_latest
registry = CollectorRegistry()
Histogram("rtt", "RTT", buckets=[0.1, 1, 10], registry=registry).observe(0.5)
print(generate_latest(registry).decode())
PY
cat > ask.js <<'JS'
const client = require("prom-client");
new client.Histogram({name: "rtt", help: "RTT", buckets: [0.1, 1, 10]}).observe(0.5);
client.register.metrics().then((text) => console.log(text));
JS
mkdir go
cat > go/main.go <<'GO'
package main

import (
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
)

func main() {
	registry := prometheus.NewRegistry()
	histogram := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "rtt", Help: "RTT", Buckets: []float64{0.1, 1, 10}})
	registry.MustRegister(histogram)
	histogram.Observe(0.5)
	families, err := registry.Gather()
	if err != nil {
		panic(err)
	}
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(os.Stdout, family); err != nil {
			panic(err)
		}
	}
}
GO
export GOFLAGS=-mod=mod
(cd go; go mod init finding; go get github.com/prometheus/client_golang@v1.23.2 github.com/prometheus/common@v0.66.1) > log 2>&1 \
    || { cat log; exit 2; }
bounds() { sed -n 's/.*le="\([^"]*\)".*/\1/p' | xargs; }
python=$(env/bin/python ask.py | bounds)
script=$(node ask.js | bounds)
go=$(cd go && go run . | bounds)
echo "bounds 0.1, 1 and 10: Python $python; JavaScript $script; Go $go"
[ "$python; $script; $go" = "0.1 1.0 10.0 +Inf; 0.1 1 10 +Inf; 0.1 1 10 +Inf" ] || { echo "the behaviour has changed"; exit 1; }
