// Servers around libraries, so that a client can measure them from elsewhere.
//
//	go hashicorp NUMBER ADDRESS,ADDRESS,… VOTERS FOLDER     hashicorp/raft
//	go dragonboat NUMBER ADDRESS,ADDRESS,… VOTERS FOLDER    dragonboat
//	go nats FILE                                            NATS with a file of settings
//
// The state of the first two is a number. At port 7000 of their address they answer GET
// /OPERATION/NUMBER by a number, or by other words where it fails. Servers after the first VOTERS
// have no vote. Nothing is batched by us, and no snapshot is ever made.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	nats "github.com/nats-io/nats-server/v2/server"
)

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

type operations map[string]func(limit context.Context, number string) (any, error)

// serve answers clients.
func serve(host string, all operations) {
	for name, run := range all {
		http.HandleFunc("/"+name+"/{number}", func(out http.ResponseWriter, asked *http.Request) {
			limit, done := context.WithTimeout(asked.Context(), 20*time.Second)
			defer done()
			value, err := run(limit, asked.PathValue("number"))
			if err != nil {
				value = err
			}
			fmt.Fprint(out, value)
		})
	}
	must(0, http.ListenAndServe(host+":7000", nil))
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
	run := map[string]func(int, []string, int, string){"hashicorp": hashicorp, "dragonboat": dragon}
	run[os.Args[1]](number, strings.Split(os.Args[3], ","), voters, os.Args[5])
}
