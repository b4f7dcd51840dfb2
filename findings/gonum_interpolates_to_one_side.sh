#!/bin/bash
# gonum 0.17.0: stat.Quantile with LinInterp draws its line through (1/n, least) … (1, largest). So the
# median of two values is the smaller one, and everything below 1/n is the least.
#
# Guess before the run: linear interpolation gives 15 ms as the median of 10 and 20 ms, as NumPy,
# R (type 7) and spreadsheets do.
# Seen: the median is 10 ms, the third quartile 15 ms (17.5 elsewhere), of the values 10 and 20 ms.
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

	"gonum.org/v1/gonum/stat"
)

func main() {
	ms := []float64{10, 20}
	median, third := stat.Quantile(0.5, stat.LinInterp, ms, nil), stat.Quantile(0.75, stat.LinInterp, ms, nil)
	fmt.Printf("gonum 0.17.0: of 10 and 20 ms the median is %v, the third quartile %v\n", median, third)
	if median != 10 || third != 15 {
		fmt.Println("the behaviour has changed")
		os.Exit(1)
	}
}
GO
export GOMODCACHE=$T/modules GOFLAGS=-mod=mod
go mod init ask > log 2>&1
go get gonum.org/v1/gonum@v0.17.0 >> log 2>&1 || { cat log; exit 2; }
go run .
