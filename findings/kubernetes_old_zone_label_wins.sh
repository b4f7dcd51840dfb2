#!/bin/bash
# k8s.io/component-helpers 0.34.0 (what Kubernetes itself groups nodes by zone with): of a node with the label of a zone in its
# old form (failure-domain.beta.kubernetes.io) and in its new form (topology.kubernetes.io) the old one decides. A node moved to
# another zone by its new labels stays in the old zone; one that has a new region and an old zone is in a zone of both.
#
# Guess before the run: the new label decides, and the old one is read where the new one is missing.
# Seen: new b, old a: zone a. New region east, old zone of west: region east, zone of west.
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
	"os"

	v1 "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/node/topology"
)

func zone(labels map[string]string) string {
	return topology.GetZoneKey(&v1.Node{ObjectMeta: meta.ObjectMeta{Labels: labels}})
}

func main() {
	both := zone(map[string]string{
		"topology.kubernetes.io/region": "east", "topology.kubernetes.io/zone": "east-b",
		"failure-domain.beta.kubernetes.io/region": "west", "failure-domain.beta.kubernetes.io/zone": "west-a"})
	mixed := zone(map[string]string{"topology.kubernetes.io/region": "east", "failure-domain.beta.kubernetes.io/zone": "west-a"})
	fmt.Printf("node with both labels: %q; new region, old zone: %q\n", both, mixed)
	if both != "west:\x00:west-a" || mixed != "east:\x00:west-a" {
		fmt.Println("the behaviour has changed")
		os.Exit(1)
	}
}
GO
export GOFLAGS=-mod=mod
go mod init finding > /dev/null 2>&1
go get k8s.io/component-helpers@v0.34.0 > log 2>&1 || { cat log; exit 2; }
echo "component-helpers $(go list -m -f '{{.Version}}' k8s.io/component-helpers)"
go run . 2> log || { cat log; exit 1; }
