// The server's paths are those of Go 1.21.
//go:debug httpmuxgo121=1

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/pingcap/kvproto/pkg/metapb"
	"github.com/pingcap/kvproto/pkg/pdpb"
	"github.com/pingcap/log"
	"github.com/tikv/pd/pkg/schedule/schedulers"
	"github.com/tikv/pd/pkg/utils/logutil"
	"github.com/tikv/pd/server"
	"github.com/tikv/pd/server/api"
	"github.com/tikv/pd/server/config"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// A real PD with stores that only send heartbeats. Arguments: folder, port for clients, port for peers,
// then the region of each store. Each line on standard input is a document of placement rules, as a
// JSON string; the answer is PD's status and, once its scheduler has nothing left to do, the region's
// replicas. Stores carry out the orders that PD sends with its answers to heartbeats.

type cluster struct {
	sync.Mutex
	client  pdpb.PDClient
	header  *pdpb.RequestHeader
	url     string
	stores  map[uint64]string // region by number of store
	region  *metapb.Region
	leader  *metapb.Peer
	streams map[uint64]pdpb.PD_RegionHeartbeatClient
	orders  int
	changed time.Time
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (c *cluster) id() uint64 {
	found, err := c.client.AllocID(context.Background(), &pdpb.AllocIDRequest{Header: c.header})
	check(err)
	return found.Id
}

func (c *cluster) post(method, path string, body []byte) (int, string) {
	request, err := http.NewRequest(method, c.url+path, bytes.NewReader(body))
	check(err)
	answer, err := http.DefaultClient.Do(request)
	check(err)
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text)
}

func (c *cluster) storeHeartbeats() {
	for number := range c.stores {
		stats := &pdpb.StoreStats{StoreId: number, Capacity: 1 << 40, Available: 1 << 39, RegionCount: 1}
		c.client.StoreHeartbeat(context.Background(), &pdpb.StoreHeartbeatRequest{Header: c.header, Stats: stats})
	}
}

// PD sends its orders for a region on the stream of the store that leads it.
func (c *cluster) stream(store uint64) pdpb.PD_RegionHeartbeatClient {
	if found := c.streams[store]; found != nil {
		return found
	}
	stream, err := c.client.RegionHeartbeat(context.Background())
	check(err)
	c.streams[store] = stream
	go func() {
		for {
			order, err := stream.Recv()
			if err != nil {
				return
			}
			c.carryOut(order)
		}
	}()
	return stream
}

func (c *cluster) regionHeartbeat() {
	c.Lock()
	defer c.Unlock()
	c.stream(c.leader.StoreId).Send(&pdpb.RegionHeartbeatRequest{
		Header: c.header, Region: c.region, Leader: c.leader, ApproximateSize: 10, ApproximateKeys: 100,
		Interval: &pdpb.TimeInterval{StartTimestamp: uint64(time.Now().Unix()) - 1, EndTimestamp: uint64(time.Now().Unix())},
	})
}

func (c *cluster) carryOut(order *pdpb.RegionHeartbeatResponse) {
	c.Lock()
	defer c.Unlock()
	switch {
	case order.TransferLeader != nil:
		for _, peer := range c.region.Peers {
			if peer.StoreId == order.TransferLeader.Peer.StoreId && peer.Role == metapb.PeerRole_Voter {
				c.leader = peer
			}
		}
	case order.ChangePeer != nil:
		c.change(order.ChangePeer, false)
	case order.ChangePeerV2 != nil:
		changes := order.ChangePeerV2.Changes
		for _, one := range changes {
			c.change(one, len(changes) > 1)
		}
		if len(changes) == 0 { // the joint configuration ends
			for _, peer := range c.region.Peers {
				if peer.Role == metapb.PeerRole_IncomingVoter {
					peer.Role = metapb.PeerRole_Voter
					c.region.RegionEpoch.ConfVer++
				} else if peer.Role == metapb.PeerRole_DemotingVoter {
					peer.Role = metapb.PeerRole_Learner
					c.region.RegionEpoch.ConfVer++
				}
			}
		}
	default:
		return
	}
	c.orders++
	c.changed = time.Now()
}

func (c *cluster) change(one *pdpb.ChangePeer, joint bool) {
	peers := []*metapb.Peer{}
	var present *metapb.Peer
	for _, peer := range c.region.Peers {
		if peer.Id == one.Peer.Id {
			present = peer
		}
		if peer.Id != one.Peer.Id || one.ChangeType.String() != "RemoveNode" {
			peers = append(peers, peer)
		}
	}
	role := metapb.PeerRole_Voter
	switch one.ChangeType.String() {
	case "AddNode":
		if joint {
			role = metapb.PeerRole_IncomingVoter
		}
	case "AddLearnerNode":
		role = metapb.PeerRole_Learner
		if joint && present != nil {
			role = metapb.PeerRole_DemotingVoter
		}
	}
	if one.ChangeType.String() != "RemoveNode" {
		if present == nil {
			present = &metapb.Peer{Id: one.Peer.Id, StoreId: one.Peer.StoreId}
			peers = append(peers, present)
		}
		present.Role = role
	}
	// heartbeats that are under way keep the peers they were made with
	copied := *c.region
	copied.Peers = peers
	epoch := *c.region.RegionEpoch
	epoch.ConfVer++
	copied.RegionEpoch = &epoch
	c.region = &copied
}

func (c *cluster) roles(status int, body string) map[string]any {
	c.Lock()
	defer c.Unlock()
	found := map[string]map[string]int{}
	for _, peer := range c.region.Peers {
		role := peer.Role.String()
		if found[role] == nil {
			found[role] = map[string]int{}
		}
		found[role][c.stores[peer.StoreId]]++
	}
	return map[string]any{
		"status": status, "body": body, "orders": c.orders, "leader": c.stores[c.leader.StoreId],
		"voters": found["Voter"], "learners": found["Learner"], "roles": len(found),
	}
}

func main() {
	folder, client, peer := os.Args[1], "http://127.0.0.1:"+os.Args[2], "http://127.0.0.1:"+os.Args[3]
	cfg := config.NewConfig()
	cfg.Name, cfg.DataDir, cfg.ClientUrls, cfg.PeerUrls = "pd", folder, client, peer
	cfg.Log.Level = "error"
	check(cfg.Adjust(nil, false))
	check(logutil.SetupLogger(cfg.Log, &cfg.Logger, &cfg.LogProps, false))
	log.ReplaceGlobals(cfg.Logger, cfg.LogProps)
	schedulers.Register()
	pd, err := server.CreateServer(context.Background(), cfg, nil, api.NewHandler)
	check(err)
	check(pd.Run())
	defer pd.Close()

	connection, err := grpc.Dial("127.0.0.1:"+os.Args[2], grpc.WithTransportCredentials(insecure.NewCredentials()))
	check(err)
	c := &cluster{client: pdpb.NewPDClient(connection), url: client, stores: map[uint64]string{},
		streams: map[uint64]pdpb.PD_RegionHeartbeatClient{}, changed: time.Now()}
	for !pd.GetMember().IsLeader() {
		time.Sleep(50 * time.Millisecond)
	}
	c.header = &pdpb.RequestHeader{ClusterId: pd.ClusterID()}
	for k, place := range os.Args[4:] {
		number := c.id()
		c.stores[number] = place
		store := &metapb.Store{Id: number, Address: fmt.Sprintf("127.0.0.1:%d", 30000+k), Version: "7.5.0",
			Labels: []*metapb.StoreLabel{{Key: "region", Value: place}, {Key: "host", Value: fmt.Sprint("h", k)}}}
		if k == 0 { // the only replica begins at the first store
			c.leader = &metapb.Peer{Id: c.id(), StoreId: number}
			c.region = &metapb.Region{Id: c.id(), RegionEpoch: &metapb.RegionEpoch{ConfVer: 1, Version: 1},
				Peers: []*metapb.Peer{c.leader}}
			_, err = c.client.Bootstrap(context.Background(), &pdpb.BootstrapRequest{Header: c.header, Store: store, Region: c.region})
		} else {
			_, err = c.client.PutStore(context.Background(), &pdpb.PutStoreRequest{Header: c.header, Store: store})
		}
		check(err)
	}
	c.post("DELETE", "/pd/api/v1/config/region-label/rule/keyspaces%2F0", nil) // would split the region
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for tick := 0; ; tick++ {
			if tick%10 == 0 {
				c.storeHeartbeats()
			}
			c.regionHeartbeat()
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	scan := bufio.NewScanner(os.Stdin)
	scan.Buffer(make([]byte, 1<<20), 1<<26)
	for scan.Scan() {
		var text string
		check(json.Unmarshal(scan.Bytes(), &text))
		status, body := c.post("POST", "/pd/api/v1/config/placement-rule/pd", []byte(text))
		c.Lock()
		c.orders, c.changed = 0, time.Now()
		c.Unlock()
		for start := time.Now(); status == 200 && time.Since(start) < 60*time.Second; {
			time.Sleep(200 * time.Millisecond)
			c.Lock()
			rest := time.Since(c.changed)
			c.Unlock()
			if rest > 4*time.Second {
				break
			}
		}
		encoded, _ := json.Marshal(c.roles(status, body))
		fmt.Println(string(encoded))
	}
	close(stop) // a heartbeat to a server that closes would fail
	<-stopped
}
