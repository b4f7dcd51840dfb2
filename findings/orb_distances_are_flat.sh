#!/bin/bash
# paulmach/orb 0.14.0 (Go): geo.Distance measures on a flat map, without a word in its description. Distances between continents
# are up to a quarter too long, and the farther site may come first.
#
# Guess before the run: the great circle, though an approximation was in use once.
# Seen: Frankfurt to Oregon 9,546 km instead of 8,235, Singapore to Virginia 19,137 instead of 15,544. From Frankfurt, Oregon is
# nearer than Cape Town (9,400 km), but has the longer geo.Distance. DistanceHaversine is right.
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

	"github.com/paulmach/orb"
	"github.com/paulmach/orb/geo"
)

func main() {
	frankfurt, oregon, capeTown := orb.Point{8.7, 50.1}, orb.Point{-119.3, 45.9}, orb.Point{18.4, -33.9}
	singapore, virginia := orb.Point{103.8, 1.35}, orb.Point{-77.5, 39.0}
	found := ""
	for _, pair := range [][2]orb.Point{{frankfurt, oregon}, {frankfurt, capeTown}, {singapore, virginia}} {
		found += fmt.Sprintf("%.0f %.0f, ", geo.Distance(pair[0], pair[1])/1000, geo.DistanceHaversine(pair[0], pair[1])/1000)
	}
	fmt.Println("km by Distance and by DistanceHaversine, Frankfurt-Oregon, Frankfurt-Cape Town, Singapore-Virginia:", found)
	if found != "9546 8235, 9412 9400, 19137 15544, " {
		fmt.Println("the behaviour has changed")
		os.Exit(1)
	}
}
GO
export GOFLAGS=-mod=mod
go mod init finding > /dev/null 2>&1
go get github.com/paulmach/orb@v0.14.0 > /dev/null 2>&1
echo "paulmach/orb $(go list -m -f '{{.Version}}' github.com/paulmach/orb)"
go run .
