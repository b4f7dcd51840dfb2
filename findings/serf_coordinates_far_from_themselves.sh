#!/bin/bash
# hashicorp/serf 0.10.2 (network coordinates of Consul and Nomad, `consul rtt`): servers whose RTTs are the
# sums of their access links can get coordinates by which one of them is hundreds of ms from itself. The
# height of a coordinate counts twice, and the adjustment that takes it away between two servers is left
# out where the sum would be negative.
#
# Guess before the run: the distance of a coordinate to itself is 0, or at most 0.02 ms, two heights of
# the least allowed size.
# Seen in 30 groups of five servers with RTTs of 24 to 106 ms, three times: two servers are off by at most 19
# to 33 ms; in 25 to 27 groups a server is more than 1 ms from itself, at worst 823 to 955 ms. A matrix of
# RTTs that is made of coordinates needs another diagonal.
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
	"math"
	"math/rand"
	"os"
	"time"

	"github.com/hashicorp/serf/coordinate"
)

var links = []float64{5, 18.75, 32.5, 46.25, 60} // ms

// group returns the largest error between two servers, and the largest distance to itself, ms.
func group(seed int64) (off, own float64) {
	var servers []*coordinate.Client
	for range links {
		server, err := coordinate.NewClient(coordinate.DefaultConfig())
		if err != nil {
			panic(err)
		}
		servers = append(servers, server)
	}
	draw := rand.New(rand.NewSource(seed))
	for n := 0; n < 50000; n++ {
		i := draw.Intn(len(links))
		k := (i + 1 + draw.Intn(len(links)-1)) % len(links)
		rtt := time.Duration((links[i] + links[k]) * 1e6)
		if _, err := servers[i].Update(fmt.Sprint(k), servers[k].GetCoordinate(), rtt); err != nil {
			panic(err)
		}
	}
	for i := range links {
		for k := range links {
			ms := servers[i].DistanceTo(servers[k].GetCoordinate()).Seconds() * 1000
			if i == k {
				own = max(own, ms)
			} else {
				off = max(off, math.Abs(ms-links[i]-links[k]))
			}
		}
	}
	return off, own
}

func main() {
	off, own, far := 0.0, 0.0, 0
	for seed := int64(1); seed <= 30; seed++ {
		o, w := group(seed)
		off, own = max(off, o), max(own, w)
		if w > 1 {
			far++
		}
	}
	fmt.Printf("30 groups of 5: two servers off by at most %.1f ms; a server and itself: up to %.1f ms, "+
		"above 1 ms in %d groups\n", off, own, far)
	if off > 60 || own < 100 || far < 10 {
		fmt.Println("the behaviour has changed")
		os.Exit(1)
	}
}
GO
export GOFLAGS=-mod=mod
go mod init finding > /dev/null 2>&1
go get github.com/hashicorp/serf/coordinate@v0.10.2 > /dev/null 2>&1
echo "hashicorp/serf $(go list -m -f '{{.Version}}' github.com/hashicorp/serf)"
go run .
