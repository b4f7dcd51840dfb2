package main

import (
	"os"

	"go.etcd.io/etcd/etcdctl/v3/ctlv3"
	"go.etcd.io/etcd/server/v3/etcdmain"
)

// One program for both: etcdctl when the first argument says so, else the server.
func main() {
	if len(os.Args) > 1 && os.Args[1] == "etcdctl" {
		os.Args = os.Args[1:]
		ctlv3.MustStart()
		return
	}
	etcdmain.Main(os.Args)
}
