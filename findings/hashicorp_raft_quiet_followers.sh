#!/bin/bash
# hashicorp/raft 1.7.3 (the library of Consul, Nomad, Vault and rqlite): on a quiet group the followers
# learn of a commit by a timer, long after the leader has answered; on a busy group at once.
#
# Guess before the run: the leader tells its followers of a commit in its next message, which it sends
# at once, so a follower applies a write within a few ms of the answer.
# Seen: with a write every 300 ms a follower applies it 50 to 100 ms after the answer (CommitTimeout,
# 50 ms, to which up to as much again is added at random); with a write every 2 ms after 2 to 3 ms.
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
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

type clock struct {
	lock sync.Mutex
	at   map[uint64]time.Time
}

func (c *clock) Apply(l *raft.Log) interface{} {
	c.lock.Lock()
	c.at[l.Index] = time.Now()
	c.lock.Unlock()
	return nil
}
func (*clock) Snapshot() (raft.FSMSnapshot, error) { return nil, io.EOF }
func (*clock) Restore(r io.ReadCloser) error       { return r.Close() }

func main() {
	clocks := make([]clock, 3)
	var nodes []*raft.Raft
	var wires []*raft.InmemTransport
	var members []raft.Server
	for i := range clocks {
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
		clocks[i].at = map[uint64]time.Time{}
		logs := raft.NewInmemStore()
		node, err := raft.NewRaft(config, &clocks[i], logs, logs, raft.NewInmemSnapshotStore(), wire)
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
	measure := func(what string, least, most float64, pause time.Duration, count int) bool {
		answered := map[uint64]time.Time{}
		for i := 0; i < count; i++ {
			done := nodes[leader].Apply([]byte("x"), 0)
			if err := done.Error(); err != nil {
				panic(err)
			}
			answered[done.Index()] = time.Now()
			time.Sleep(pause)
		}
		time.Sleep(300 * time.Millisecond)
		follower := &clocks[(leader+1)%3]
		follower.lock.Lock()
		defer follower.lock.Unlock()
		var later []float64
		for index, when := range answered {
			later = append(later, float64(follower.at[index].Sub(when).Microseconds())/1000)
		}
		sort.Float64s(later)
		middle := later[len(later)/2]
		fmt.Printf("%-24s %6.1f ms after the answer (median of %d, largest %.1f), expected %.0f to %.0f\n",
			what, middle, count, later[len(later)-1], least, most)
		return middle >= least && middle <= most
	}
	good := measure("a write every 300 ms", 40, 110, 300*time.Millisecond, 25)
	good = measure("a write every 2 ms", 0, 12, 2*time.Millisecond, 500) && good
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
