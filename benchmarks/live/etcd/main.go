// One program for the server and etcdctl.
//
//	etcd …            the server
//	etcd etcdctl …    etcdctl
package main

import (
	"os"

	"go.etcd.io/etcd/etcdctl/v3/ctlv3"
	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "etcdctl" {
		os.Args = os.Args[1:]
		ctlv3.MustStart()
		return
	}
	etcdmain.Main(os.Args)
}
