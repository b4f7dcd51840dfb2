#!/bin/bash
# hashicorp/raft 1.7.3 (the library of Consul, Nomad, Vault and rqlite): a commit waits for the
# leader's log first, and asks the followers after that, so the times of their disks add up.
#
# Guess before the run: the leader writes its log while the followers write theirs, as section 10.2.1
# of Ongaro's thesis proposes, so three disks of 40 ms cost 40 ms, and a slow leader alone nothing.
# Seen: 41 ms with a slow disk at the leader alone, 81 ms with three slow disks, 1 ms with a slow disk
# at one follower.
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
	"io"
	"os"
	"sort"
	"time"

	"github.com/hashicorp/raft"
)

type slow struct {
	*raft.InmemStore
	disk *time.Duration
}

func (s slow) StoreLog(l *raft.Log) error { time.Sleep(*s.disk); return s.InmemStore.StoreLog(l) }
func (s slow) StoreLogs(l []*raft.Log) error {
	time.Sleep(*s.disk)
	return s.InmemStore.StoreLogs(l)
}

type nothing struct{}

func (nothing) Apply(*raft.Log) interface{}         { return nil }
func (nothing) Snapshot() (raft.FSMSnapshot, error) { return nil, io.EOF }
func (nothing) Restore(r io.ReadCloser) error       { return r.Close() }

func main() {
	disks := make([]time.Duration, 3)
	var nodes []*raft.Raft
	var wires []*raft.InmemTransport
	var members []raft.Server
	for i := range disks {
		name := fmt.Sprint(i)
		address, wire := raft.NewInmemTransport(raft.ServerAddress(name))
		wires = append(wires, wire)
		members = append(members, raft.Server{ID: raft.ServerID(name), Address: address})
	}
	for i, wire := range wires {
		for k, other := range wires {
			if i != k {
				wire.Connect(members[k].Address, other)
			}
		}
		config := raft.DefaultConfig()
		config.LocalID, config.LogLevel = members[i].ID, "ERROR"
		logs := slow{raft.NewInmemStore(), &disks[i]}
		node, err := raft.NewRaft(config, nothing{}, logs, logs, raft.NewInmemSnapshotStore(), wire)
		if err != nil {
			panic(err)
		}
		nodes = append(nodes, node)
	}
	nodes[0].BootstrapCluster(raft.Configuration{Servers: members})
	leader := -1
	for leader < 0 {
		time.Sleep(50 * time.Millisecond)
		for i, node := range nodes {
			if node.State() == raft.Leader {
				leader = i
			}
		}
	}
	const ms = time.Millisecond
	measure := func(what string, least, most float64, mine, first, second time.Duration) bool {
		disks[leader], disks[(leader+1)%3], disks[(leader+2)%3] = mine, first, second
		var took []float64
		for i := 0; i < 25; i++ {
			start := time.Now()
			if err := nodes[leader].Apply([]byte("x"), 0).Error(); err != nil {
				panic(err)
			}
			took = append(took, float64(time.Since(start).Microseconds())/1000)
			time.Sleep(5 * ms)
		}
		sort.Float64s(took)
		fmt.Printf("%-28s %6.1f ms, expected %.0f to %.0f\n", what, took[12], least, most)
		return took[12] >= least && took[12] <= most
	}
	good := measure("no slow disk", 0, 15, 0, 0, 0)
	good = measure("slow disk at one follower", 0, 15, 0, 40*ms, 0) && good
	good = measure("slow disk at the leader", 38, 60, 40*ms, 0, 0) && good
	good = measure("three slow disks", 76, 105, 40*ms, 40*ms, 40*ms) && good
	if !good {
		fmt.Println("the behaviour has changed")
		os.Exit(1)
	}
}
GO
export GOFLAGS=-mod=mod
go mod init finding > /dev/null 2>&1
go get github.com/hashicorp/raft@v1.7.3 > /dev/null 2>&1
echo "hashicorp/raft $(go list -m -f '{{.Version}}' github.com/hashicorp/raft)"
go run .
