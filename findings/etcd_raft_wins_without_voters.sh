#!/bin/bash
# go.etcd.io/raft/v3 3.6.0 (the library of etcd): a configuration without a voter wins every election and has
# committed everything. Joint quorums are simple by that; but who asks these functions about a plan learns that it has
# a quorum when it has no voters.
#
# Guess before the run: without a voter there is no majority: the vote is pending or lost, and the committed index is 0.
# Seen: VoteWon, and the largest number that 64 bits hold as the committed index. One voter that has not answered: VotePending, 0.
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
	"os"

	"go.etcd.io/raft/v3/quorum"
)

type nothing struct{}

func (nothing) AckedIndex(uint64) (quorum.Index, bool) { return 0, false }

func main() {
	none, one := quorum.MajorityConfig{}, quorum.MajorityConfig{1: {}}
	joint := quorum.JointConfig{{1: {}, 2: {}, 3: {}}, none}
	answers := map[uint64]bool{}
	fmt.Println("no voter:", none.VoteResult(answers), uint64(none.CommittedIndex(nothing{})))
	fmt.Println("one voter without an answer:", one.VoteResult(answers), one.CommittedIndex(nothing{}))
	fmt.Println("three voters and none, two of three agree:", joint.VoteResult(map[uint64]bool{1: true, 2: true}))
	wins := none.VoteResult(answers) == quorum.VoteWon && none.CommittedIndex(nothing{}) == math.MaxUint64
	if !wins || one.VoteResult(answers) != quorum.VotePending {
		fmt.Println("the behaviour has changed")
		os.Exit(1)
	}
}
GO
export GOFLAGS=-mod=mod
go mod init finding > /dev/null 2>&1
go get go.etcd.io/raft/v3@v3.6.0 > /dev/null 2>&1
echo "go.etcd.io/raft/v3 $(go list -m -f '{{.Version}}' go.etcd.io/raft/v3)"
go run .
