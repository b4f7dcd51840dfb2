#!/bin/bash
# VividCortex/ewma 1.2.0 (Go; moving averages): an average with an age of one's own is 0 for its first ten values. One with the
# default age has a value from the first on. A router that takes the site of the least average RTT takes a new site for
# its first ten requests, however far away it is.
#
# Guess before the run: the first RTT is the average, with any age, as it is without one.
# Seen: with an age of 20 the average of one to ten RTTs of 10 ms is 0, and 10 from the eleventh on. With an age of 30, which
# is the default, it is 10 from the first RTT on, whether the age was given or not.
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

	"github.com/VividCortex/ewma"
)

func main() {
	same := true
	for _, age := range []float64{20, 30} {
		average := ewma.NewMovingAverage(age)
		var seen []float64
		for count := 1; count <= 12; count++ {
			average.Add(10)
			seen = append(seen, average.Value())
			same = same && (average.Value() == 0) == (age == 20 && count <= 10)
		}
		fmt.Println("age", age, "after 1 to 12 RTTs of 10 ms:", seen)
	}
	first := ewma.NewMovingAverage()
	first.Add(10)
	fmt.Println("no age, after 1 RTT of 10 ms:", first.Value())
	same = same && first.Value() == 10
	if !same {
		fmt.Println("the behaviour has changed")
		os.Exit(1)
	}
}
GO
export GOFLAGS=-mod=mod
go mod init finding > /dev/null 2>&1
go get github.com/VividCortex/ewma@v1.2.0 > /dev/null 2>&1
echo "VividCortex/ewma $(go list -m -f '{{.Version}}' github.com/VividCortex/ewma)"
go run .
