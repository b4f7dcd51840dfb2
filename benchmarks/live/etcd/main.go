// One program for the server, etcdctl, and a client that measures.
//
//	etcd …            the server
//	etcd etcdctl …    etcdctl
//	etcd load …       operations of clients at one place, a line for each; see load
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/etcdctl/v3/ctlv3"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

func main() {
	mode := ""
	if len(os.Args) > 1 {
		mode = os.Args[1]
	}
	switch mode {
	case "etcdctl":
		os.Args = os.Args[1:]
		ctlv3.MustStart()
	case "load":
		load(os.Args[2:])
	default:
		etcdmain.Main(os.Args)
	}
}

// reconnect bounds the time between two attempts to reach a member. By default gRPC waits up to two
// minutes. A member that comes back after a minute of absence, and leads, would be out of reach of
// the clients that knew it before, while Status, which dials anew, says that it leads.
var reconnect = grpc.ConnectParams{
	Backoff: backoff.Config{
		BaseDelay: 200 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second,
	},
	MinConnectTimeout: 5 * time.Second,
}

// members keeps a connection to each member, and knows which of them leads and which answers first.
type members struct {
	lock         sync.Mutex
	clients      map[string]*clientv3.Client
	urls         []string
	leader, near atomic.Pointer[clientv3.Client]
}

func (all *members) at(url string) *clientv3.Client {
	all.lock.Lock()
	defer all.lock.Unlock()
	if found := all.clients[url]; found != nil {
		return found
	}
	made, err := clientv3.New(clientv3.Config{
		Endpoints: []string{url}, DialTimeout: 5 * time.Second, Logger: zap.NewNop(),
		DialKeepAliveTime: 2 * time.Second, DialKeepAliveTimeout: 2 * time.Second,
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(reconnect)},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	all.clients[url] = made
	return made
}

// find asks every member at once whether it leads, and remembers the one that says so in the
// newest term, and the one that answers first.
func (all *members) find(limit time.Duration) {
	type said struct {
		url  string
		term uint64
		lead bool
	}
	all.lock.Lock()
	urls := append([]string(nil), all.urls...)
	all.lock.Unlock()
	answers := make(chan said, len(urls))
	for _, url := range urls {
		go func() {
			ctx, stop := context.WithTimeout(context.Background(), limit)
			defer stop()
			status, err := all.at(url).Status(ctx, url)
			if err != nil {
				answers <- said{}
				return
			}
			answers <- said{url, status.RaftTerm, status.Leader == status.Header.MemberId}
		}()
	}
	var term uint64
	first := true
	for range urls {
		one := <-answers
		if one.url == "" {
			continue
		}
		if first {
			all.near.Store(all.at(one.url))
			first = false
		}
		if one.lead && one.term >= term {
			term = one.term
			all.leader.Store(all.at(one.url))
		}
	}
}

type operation struct {
	kind, url string
	weight    float64
}

// load reports "START KIND LATENCY ATTEMPTS OK" for each operation: microseconds since 1970, put, read
// (linearizable) or local (serializable), microseconds, attempts, 1 or 0. An operation that fails is tried
// again until its time is over; its latency counts from the first attempt. In the end "CHECK KEY MISSING"
// says for each worker whether its last acknowledged write can be read.
func load(arguments []string) {
	flags := flag.NewFlagSet("load", flag.ExitOnError)
	endpoints := flags.String("endpoints", "", "client URLs of all members, with commas")
	ops := flags.String("ops", "", "KIND:WEIGHT:URL with commas; URL is 'leader' or 'near' to follow the leader or the closest")
	workers := flags.Int("workers", 1, "clients, each with one operation at a time")
	count := flags.Int("count", 0, "operations of each worker; 0: no limit")
	seconds := flags.Float64("seconds", 3600, "end after this time")
	pause := flags.Duration("pause", 0, "mean of the time between two operations of a worker, exponential")
	patience := flags.Duration("patience", 10*time.Second, "until an operation is given up")
	attempt := flags.Duration("attempt", 2*time.Second, "until an attempt is given up")
	every := flags.Duration("find", 500*time.Millisecond, "between two looks for the leader")
	rounds := flags.Int("warm", 3, "operations of each kind before, which are not reported")
	size := flags.Int("size", 64, "bytes of a value")
	name := flags.String("name", "c", "beginning of the keys")
	seed := flags.Int64("seed", 1, "of the draws of operations")
	stdin := flags.Bool("stdin", false, "end with the input; take 'urls URL,URL' and 'pause 20ms' from it")
	_ = flags.Parse(arguments)

	var mix []operation
	total := 0.0
	for _, text := range strings.Split(*ops, ",") {
		parts := strings.SplitN(text, ":", 3)
		weight, err := strconv.ParseFloat(parts[1], 64)
		if err != nil {
			panic(err)
		}
		mix = append(mix, operation{parts[0], parts[2], weight})
		total += weight
	}
	warm := *rounds * len(mix)
	all := &members{clients: map[string]*clientv3.Client{}, urls: strings.Split(*endpoints, ",")}
	for all.leader.Load() == nil {
		all.find(3 * time.Second)
	}
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(*every):
				all.find(3 * time.Second)
			}
		}
	}()
	var over atomic.Bool
	var resting atomic.Int64
	resting.Store(int64(*pause))
	if *stdin {
		go func() {
			lines := bufio.NewScanner(os.Stdin)
			for lines.Scan() {
				word, value, _ := strings.Cut(lines.Text(), " ")
				if word == "pause" {
					if length, err := time.ParseDuration(value); err == nil {
						resting.Store(int64(length))
					}
					continue
				}
				all.lock.Lock()
				all.urls = strings.Split(value, ",")
				all.lock.Unlock()
			}
			over.Store(true)
		}()
	}
	out := bufio.NewWriter(os.Stdout)
	var printing, running sync.WaitGroup
	lines := make(chan string, 4096)
	printing.Add(1)
	go func() {
		for line := range lines {
			_, _ = io.WriteString(out, line)
			if len(lines) == 0 {
				out.Flush()
			}
		}
		out.Flush()
		printing.Done()
	}()
	end := time.Now().Add(time.Duration(*seconds * float64(time.Second)))
	for w := range *workers {
		running.Add(1)
		go func() {
			defer running.Done()
			draw := rand.New(rand.NewSource(*seed*1000003 + int64(w)))
			key := fmt.Sprintf("%s-%d", *name, w)
			filler := strings.Repeat("x", *size)
			written := 0
			for i := -warm; *count == 0 || i < *count; i++ {
				if over.Load() || time.Now().After(end) {
					break
				}
				op := mix[(i+warm)%len(mix)]
				for at, rest := 0, draw.Float64()*total; i >= 0 && at < len(mix); at++ {
					op = mix[at]
					if rest -= op.weight; rest < 0 {
						break
					}
				}
				started := time.Now()
				attempts, good := 0, false
				for !good && time.Since(started) < *patience {
					attempts++
					if attempts > 1 {
						time.Sleep(20 * time.Millisecond)
					}
					good = try(all, op, key, fmt.Sprintf("%09d%s", i+warm+1, filler), *attempt) == nil
				}
				if good && op.kind == "put" {
					written = i + warm + 1
				}
				if i >= 0 {
					ok := 0
					if good {
						ok = 1
					}
					lines <- fmt.Sprintf("%d %s %d %d %d\n", started.UnixMicro(), op.kind,
						time.Since(started).Microseconds(), attempts, ok)
				}
				time.Sleep(time.Duration(draw.ExpFloat64() * float64(resting.Load())))
			}
			if written > 0 {
				missing := 1
				for range 20 {
					ctx, stop := context.WithTimeout(context.Background(), 3*time.Second)
					found, err := all.leader.Load().Get(ctx, key)
					stop()
					if err == nil {
						if len(found.Kvs) == 1 {
							if last, err := strconv.Atoi(string(found.Kvs[0].Value[:9])); err == nil && last >= written {
								missing = 0
							}
						}
						break
					}
					time.Sleep(200 * time.Millisecond)
				}
				lines <- fmt.Sprintf("CHECK %s %d\n", key, missing)
			}
		}()
	}
	running.Wait()
	close(done)
	close(lines)
	printing.Wait()
}

func try(all *members, op operation, key, value string, limit time.Duration) error {
	ctx, stop := context.WithTimeout(context.Background(), limit)
	defer stop()
	client := all.leader.Load()
	if op.url == "near" {
		client = all.near.Load()
	} else if op.url != "leader" {
		client = all.at(op.url)
	}
	var err error
	switch op.kind {
	case "put":
		_, err = client.Put(ctx, key, value)
	case "read":
		_, err = client.Get(ctx, key)
	case "local":
		_, err = client.Get(ctx, key, clientv3.WithSerializable())
	default:
		err = fmt.Errorf("unknown kind %q", op.kind)
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	return err
}
