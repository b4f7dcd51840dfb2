#!/bin/bash
# hdrhistogram-go 1.2.0: ValueAtQuantile takes a percentage, not a quantile. ValueAtQuantile(0.99) is not the 99th percentile
# but nearly the least value, with neither error nor panic.
#
# Guess before the run: ValueAtQuantile(0.99) is the 99th percentile, as Quantile(0.99) elsewhere in Go (gonum).
# Seen: of 1 to 1,000 ms ValueAtQuantile(0.99) is 10, ValueAtQuantile(99) is 990; a quantile of 0.5 is 5 ms, not 500.
#
# Needs Go and the Go module proxy.
set -euo pipefail
T=$(mktemp -d)
trap 'chmod -R u+w "$T"; rm -rf "$T"' EXIT
cd "$T"
cat > main.go <<'GO'
package main

import (
	"fmt"
	"os"

	"github.com/HdrHistogram/hdrhistogram-go"
)

func main() {
	kept := hdrhistogram.New(1, 60000, 3)
	for ms := int64(1); ms <= 1000; ms++ {
		if err := kept.RecordValue(ms); err != nil {
			panic(err)
		}
	}
	found := fmt.Sprint(kept.ValueAtQuantile(0.5), kept.ValueAtQuantile(0.99), kept.ValueAtQuantile(50), kept.ValueAtQuantile(99))
	fmt.Println("1 to 1000 ms, ValueAtQuantile of 0.5, 0.99, 50 and 99:", found)
	if found != "5 10 500 990" {
		fmt.Println("the behaviour has changed")
		os.Exit(1)
	}
}
GO
export GOFLAGS=-mod=mod
go mod init finding > /dev/null 2>&1
go get github.com/HdrHistogram/hdrhistogram-go@v1.2.0 > /dev/null 2>&1
echo "hdrhistogram-go $(go list -m -f '{{.Version}}' github.com/HdrHistogram/hdrhistogram-go)"
go run .
