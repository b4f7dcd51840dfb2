// Servers around three libraries, so that a client can measure them from elsewhere.
//
//	go hashicorp NUMBER ADDRESS,ADDRESS,… VOTERS FOLDER     hashicorp/raft
//	go dragonboat NUMBER ADDRESS,ADDRESS,… VOTERS FOLDER    dragonboat
//	go nats FILE                                            NATS with a file of settings
//
// The first two listen at port 7000 of their address for lines "OPERATION KEY NUMBER", answered by
// "ok VALUE" or "error …". Servers after the first VOTERS have no vote. Nothing is batched by us.
package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"
	boltdb "github.com/hashicorp/raft-boltdb/v2"
	"github.com/lni/dragonboat/v4"
	dconfig "github.com/lni/dragonboat/v4/config"
	"github.com/lni/dragonboat/v4/logger"
	sm "github.com/lni/dragonboat/v4/statemachine"
	nats "github.com/nats-io/nats-server/v2/server"
)

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

// numbers is the state: a number for each key.
type numbers struct {
	lock  sync.Mutex
	value map[string]uint64
}

func (s *numbers) set(line []byte) {
	key, number, _ := strings.Cut(string(line), " ")
	s.lock.Lock()
	s.value[key], _ = strconv.ParseUint(number, 10, 64)
	s.lock.Unlock()
}

func (s *numbers) get(key string) uint64 {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.value[key]
}

func (s *numbers) save(to io.Writer) error { return binary.Write(to, binary.LittleEndian, uint64(0)) }

// serve answers lines, each connection by itself.
func serve(host string, answer func(operation, key, number string) (uint64, error)) {
	listener := must(net.Listen("tcp", host+":7000"))
	for {
		wire := must(listener.Accept())
		go func() {
			lines := bufio.NewScanner(wire)
			for lines.Scan() {
				words := strings.Fields(lines.Text())
				value, err := answer(words[0], words[1], words[2])
				if err != nil {
					fmt.Fprintln(wire, "error", strings.ReplaceAll(err.Error(), "\n", " "))
				} else {
					fmt.Fprintln(wire, "ok", value)
				}
			}
		}()
	}
}

var errNoSuch = errors.New("no such operation")

// --- hashicorp/raft -----------------------------------------------------------------------------

type hashicorp struct{ numbers }

func (s *hashicorp) Apply(entry *raft.Log) interface{}   { s.set(entry.Data); return nil }
func (s *hashicorp) Snapshot() (raft.FSMSnapshot, error) { return s, nil }
func (s *hashicorp) Restore(from io.ReadCloser) error    { return from.Close() }
func (s *hashicorp) Persist(sink raft.SnapshotSink) error {
	return errors.Join(s.save(sink), sink.Close())
}
func (s *hashicorp) Release() {}

func runHashicorp(number int, hosts []string, voters int, folder string) {
	config := raft.DefaultConfig()
	config.LocalID = raft.ServerID(strconv.Itoa(number))
	config.LogLevel = "WARN"
	config.HeartbeatTimeout, config.ElectionTimeout = 3*time.Second, 3*time.Second
	config.LeaderLeaseTimeout = 2 * time.Second
	store := must(boltdb.NewBoltStore(filepath.Join(folder, "log")))
	at := func(i int) raft.ServerAddress { return raft.ServerAddress(hosts[i] + ":7001") }
	wire := must(raft.NewTCPTransport(string(at(number)), nil, 3, 10*time.Second, os.Stderr))
	state := &hashicorp{numbers{value: map[string]uint64{}}}
	group := must(raft.NewRaft(config, state, store, store, raft.NewInmemSnapshotStore(), wire))
	if number == 0 {
		var servers []raft.Server
		for i := range hosts {
			vote := raft.Voter
			if i >= voters {
				vote = raft.Nonvoter
			}
			servers = append(servers, raft.Server{Suffrage: vote, ID: raft.ServerID(strconv.Itoa(i)), Address: at(i)})
		}
		group.BootstrapCluster(raft.Configuration{Servers: servers})
	}
	serve(hosts[number], func(operation, key, given string) (uint64, error) {
		switch operation {
		case "write":
			return 0, group.Apply([]byte(key+" "+given), 20*time.Second).Error()
		case "barrier":
			return 0, group.Barrier(20 * time.Second).Error()
		case "verified": // the leader asks a quorum whether it leads, then reads
			return state.get(key), group.VerifyLeader().Error()
		case "lease": // the leader answers while it believes that it leads
			if group.State() != raft.Leader {
				return 0, raft.ErrNotLeader
			}
			return state.get(key), nil
		case "stale":
			return state.get(key), nil
		case "leader": // of this program's own: who leads
			address, _ := group.LeaderWithID()
			for i := range hosts {
				if at(i) == address {
					return uint64(i), nil
				}
			}
			return 0, raft.ErrNotLeader
		}
		return 0, errNoSuch
	})
}

// --- dragonboat ---------------------------------------------------------------------------------

type dragon struct{ numbers }

func (s *dragon) Update(entry sm.Entry) (sm.Result, error) { s.set(entry.Cmd); return sm.Result{}, nil }
func (s *dragon) Lookup(key interface{}) (interface{}, error) {
	return s.get(key.(string)), nil
}
func (s *dragon) SaveSnapshot(to io.Writer, _ sm.ISnapshotFileCollection, _ <-chan struct{}) error {
	return s.save(to)
}
func (s *dragon) RecoverFromSnapshot(io.Reader, []sm.SnapshotFile, <-chan struct{}) error { return nil }
func (s *dragon) Close() error                                                            { return nil }

func runDragonboat(number int, hosts []string, voters int, folder string) {
	for _, name := range []string{"raft", "rsm", "transport", "dragonboat", "logdb", "grpc", "config"} {
		logger.GetLogger(name).SetLevel(logger.WARNING)
	}
	const shard = 1
	node := must(dragonboat.NewNodeHost(dconfig.NodeHostConfig{
		NodeHostDir: folder, RTTMillisecond: 100, RaftAddress: hosts[number] + ":7001",
	}))
	members := map[uint64]dragonboat.Target{}
	for i := 0; i < voters; i++ {
		members[uint64(i+1)] = hosts[i] + ":7001"
	}
	options := dconfig.Config{
		ReplicaID: uint64(number + 1), ShardID: shard, ElectionRTT: 30, HeartbeatRTT: 3, CheckQuorum: true,
	}
	err := node.StartReplica(members, false, func(uint64, uint64) sm.IStateMachine {
		return &dragon{numbers{value: map[string]uint64{}}}
	}, options)
	must(0, err)
	session := node.GetNoOPSession(shard)
	serve(hosts[number], func(operation, key, given string) (uint64, error) {
		limit, done := context.WithTimeout(context.Background(), 20*time.Second)
		defer done()
		value := func(found interface{}, err error) (uint64, error) {
			if err != nil {
				return 0, err
			}
			return found.(uint64), nil
		}
		switch operation {
		case "write":
			_, err := node.SyncPropose(limit, session, []byte(key+" "+given))
			return 0, err
		case "verified":
			return value(node.SyncRead(limit, shard, key))
		case "stale":
			return value(node.StaleRead(shard, key))
		case "leader": // of this program's own: who leads
			leader, _, known, err := node.GetLeaderID(shard)
			if err == nil && !known {
				err = errors.New("no leader")
			}
			return leader - 1, err
		}
		return 0, errNoSuch
	})
}

func main() {
	if os.Args[1] == "nats" {
		options := must(nats.ProcessConfigFile(os.Args[2]))
		options.NoSigs = true
		server := must(nats.NewServer(options))
		server.ConfigureLogger()
		server.Start()
		server.WaitForShutdown()
		return
	}
	number, voters := must(strconv.Atoi(os.Args[2])), must(strconv.Atoi(os.Args[4]))
	run := map[string]func(int, []string, int, string){"hashicorp": runHashicorp, "dragonboat": runDragonboat}
	run[os.Args[1]](number, strings.Split(os.Args[3], ","), voters, os.Args[5])
}
