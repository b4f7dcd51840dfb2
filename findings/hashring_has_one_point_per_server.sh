#!/bin/bash
# serialx/hashring (Go, v0.0.0-20200727003509) says that it builds its ring as libketama does, which gives a
# server 160 points. It gives one point per unit of weight. So shares are those of a random cut of a circle,
# and the second copies of all keys of a server lie on one other server.
#
# Guess before the run: each of eight equal servers has 12.5 % of the keys within a third of that, and GetNodes(key, 2)
# spreads the second copies of a server's keys over the seven others.
# Seen: the shares are 0.1 to 27.5 %, and each server has one follower for all its keys.
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

	"github.com/serialx/hashring"
)

func main() {
	servers := []string{}
	for i := 1; i <= 8; i++ {
		servers = append(servers, fmt.Sprintf("10.0.0.%d:11211", i))
	}
	ring := hashring.New(servers)
	keys := map[string]int{}
	second := map[string]map[string]bool{}
	for i := 0; i < 100000; i++ {
		copies, _ := ring.GetNodes(fmt.Sprint("key", i), 2)
		keys[copies[0]]++
		if second[copies[0]] == nil {
			second[copies[0]] = map[string]bool{}
		}
		second[copies[0]][copies[1]] = true
	}
	least, most, followers := 100000, 0, 0
	for _, server := range servers {
		least, most, followers = min(least, keys[server]), max(most, keys[server]), followers+len(second[server])
		fmt.Printf("%s: %.1f %% of the keys, second copies on %v\n", server, float64(keys[server])/1000, second[server])
	}
	if least > 100 || most < 25000 || followers != 8 {
		fmt.Println("the behaviour has changed")
		os.Exit(1)
	}
}
GO
export GOMODCACHE=$T/modules GOFLAGS=-mod=mod
go mod init ask > log 2>&1
go get github.com/serialx/hashring@v0.0.0-20200727003509-22c0c7ab6b1b >> log 2>&1 || { cat log; exit 2; }
go run .
