package main

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	boltdb "github.com/hashicorp/raft-boltdb/v2"
)

type applied struct {
	raft.MockFSM
	atomic.Uint64
}

func (s *applied) Apply(entry *raft.Log) interface{} {
	s.Store(must(strconv.ParseUint(string(entry.Data), 10, 64)))
	return nil
}

func hashicorp(number int, hosts []string, voters int, folder string) {
	config := raft.DefaultConfig()
	config.LocalID = raft.ServerID(strconv.Itoa(number))
	config.LogLevel = "WARN"
	config.HeartbeatTimeout, config.ElectionTimeout = 3*time.Second, 3*time.Second
	config.LeaderLeaseTimeout = 2 * time.Second
	store := must(boltdb.NewBoltStore(filepath.Join(folder, "log")))
	wire := must(raft.NewTCPTransport(hosts[number]+":7001", nil, 3, 10*time.Second, os.Stderr))
	state := &applied{}
	group := must(raft.NewRaft(config, state, store, store, raft.NewInmemSnapshotStore(), wire))
	var servers []raft.Server
	for i, host := range hosts {
		vote := raft.Voter
		if i >= voters {
			vote = raft.Nonvoter
		}
		id, address := raft.ServerID(strconv.Itoa(i)), raft.ServerAddress(host+":7001")
		servers = append(servers, raft.Server{Suffrage: vote, ID: id, Address: address})
	}
	if number == 0 {
		group.BootstrapCluster(raft.Configuration{Servers: servers})
	}
	serve(hosts[number], operations{
		"write": func(_ context.Context, given string) (any, error) {
			return 0, group.Apply([]byte(given), 20*time.Second).Error()
		},
		"barrier": func(context.Context, string) (any, error) {
			return 0, group.Barrier(20 * time.Second).Error()
		},
		"verified": func(context.Context, string) (any, error) { // it asks a quorum whether it leads
			return state.Load(), group.VerifyLeader().Error()
		},
		"lease": func(context.Context, string) (any, error) { // it believes that it leads
			if group.State() != raft.Leader {
				return 0, raft.ErrNotLeader
			}
			return state.Load(), nil
		},
		"stale": func(context.Context, string) (any, error) { return state.Load(), nil },
		"leader": func(context.Context, string) (any, error) { // who leads
			_, id := group.LeaderWithID()
			return id, nil
		},
	})
}
