#!/bin/bash
# valyala/histogram 1.2.0 (Go): it keeps 1,000 values, drawn at random. The p99.9 of many requests is then about the largest
# of those that were kept, and off by a third; p99 by a fifth. Least and largest are exact.
#
# Guess before the run: percentiles within about 1 %, as of other sketches.
# Seen: of ten times 200,000 latencies (lognormal) p99.9 is 0.67 to 1.14 of the exact one, p99 0.76 to 1.22 and the median 0.99
# to 1.09.
#
# Needs Go and the Go module proxy.
set -euo pipefail
T=$(mktemp -d)
trap 'chmod -R u+w "$T"; rm -rf "$T"' EXIT
cd "$T"
export GOPATH="$T/go" GOCACHE="$T/cache" GOFLAGS=-mod=mod
cat > go.mod <<'GO'
module ask

go 1.21

require github.com/valyala/histogram v1.2.0
GO
cat > main.go <<'GO'
package main

import (
	"fmt"
	"math"
	"math/rand"
	"os"
	"sort"

	"github.com/valyala/histogram"
)

func main() {
	draw := rand.New(rand.NewSource(1))
	worst := 0.0
	for range make([]int, 10) {
		sketch := histogram.NewFast()
		latencies := make([]float64, 200000)
		for i := range latencies {
			latencies[i] = 10 * math.Exp(draw.NormFloat64())
			sketch.Update(latencies[i])
		}
		sort.Float64s(latencies)
		share := func(level float64) float64 {
			return sketch.Quantile(level) / latencies[int(level*199999)]
		}
		fmt.Printf("of the exact one: p50 %.2f p99 %.2f p99.9 %.2f largest %.2f\n", share(0.5), share(0.99), share(0.999), share(1))
		worst = math.Max(worst, math.Abs(share(0.999)-1))
	}
	if worst < 0.1 {
		fmt.Println("the behaviour has changed")
		os.Exit(1)
	}
}
GO
go run .
