#!/bin/bash
# toxiproxy 2.12.0 (Go): a "latency" of 200 ms delays what the server sends, and nothing else. A connection stands at once, so a
# probe that times the connection (TCP ping, blackbox exporter) sees no distance; a request and its answer take 200 ms.
#
# Guess before the run: the latency is that of the link, both ways: a connection takes 200 ms or more, an echo 400 ms.
# Seen: the connection takes 2 ms, the echo of one byte 201 ms.
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
	"net"
	"os"
	"strings"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func echo(server net.Listener) {
	for {
		client, err := server.Accept()
		check(err)
		go io.Copy(client, client)
	}
}

func main() {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	go echo(server)
	control := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	link := toxiproxy.NewProxy(control, "database", "127.0.0.1:0", server.Addr().String())
	check(link.Start())
	_, err = link.Toxics.AddToxicJson(strings.NewReader(`{"type": "latency", "attributes": {"latency": 200}}`))
	check(err)
	start := time.Now()
	client, err := net.Dial("tcp", link.Listen)
	check(err)
	connected := time.Since(start)
	start = time.Now()
	_, err = client.Write([]byte("x"))
	check(err)
	_, err = io.ReadFull(client, make([]byte, 1))
	check(err)
	answered := time.Since(start)
	fmt.Println("toxiproxy, latency 200 ms: connected in", connected, "and answered in", answered)
	if connected > 100*time.Millisecond || answered < 190*time.Millisecond || answered > 350*time.Millisecond {
		fmt.Println("the behaviour has changed")
		os.Exit(1)
	}
}
GO
export GOFLAGS=-mod=mod
go mod init finding > /dev/null 2>&1
go get github.com/Shopify/toxiproxy/v2@v2.12.0 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
go run .
