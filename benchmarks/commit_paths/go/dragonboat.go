package main

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"

	"github.com/lni/dragonboat/v4"
	"github.com/lni/dragonboat/v4/config"
	state "github.com/lni/dragonboat/v4/statemachine"
)

type updated struct {
	state.IStateMachine // what snapshots need
	atomic.Uint64
}

func (s *updated) Lookup(interface{}) (interface{}, error) { return s.Load(), nil }
func (s *updated) Update(entry state.Entry) (state.Result, error) {
	s.Store(must(strconv.ParseUint(string(entry.Cmd), 10, 64)))
	return state.Result{}, nil
}

func dragon(number int, hosts []string, voters int, folder string) {
	members := map[uint64]dragonboat.Target{}
	for i, host := range hosts[:voters] {
		members[uint64(i+1)] = host + ":7001"
	}
	node := must(dragonboat.NewNodeHost(config.NodeHostConfig{
		NodeHostDir: folder, RTTMillisecond: 100, RaftAddress: hosts[number] + ":7001",
	}))
	const shard = 1
	started := node.StartReplica(members, false, func(uint64, uint64) state.IStateMachine {
		return &updated{}
	}, config.Config{
		ReplicaID: uint64(number + 1), ShardID: shard, ElectionRTT: 30, HeartbeatRTT: 3, CheckQuorum: true,
	})
	must(0, started)
	session := node.GetNoOPSession(shard)
	serve(hosts[number], operations{
		"write": func(limit context.Context, given string) (any, error) {
			_, err := node.SyncPropose(limit, session, []byte(given))
			return 0, err
		},
		"verified": func(limit context.Context, _ string) (any, error) {
			return node.SyncRead(limit, shard, nil)
		},
		"stale": func(context.Context, string) (any, error) { return node.StaleRead(shard, nil) },
		"leader": func(context.Context, string) (any, error) { // who leads
			leader, _, known, err := node.GetLeaderID(shard)
			if !known {
				err = errors.Join(err, errors.New("no leader"))
			}
			return leader - 1, err
		},
	})
}
