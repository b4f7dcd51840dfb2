#!/bin/bash
# Kubernetes selectors (k8s.io/apimachinery v0.34.1, and node affinity by k8s.io/component-helpers v0.34.1): "zone notin (a)" and
# "zone != a" match nodes that have no zone at all, for which "zone in (…)" and "zone in any other" fail. A rule
# that keeps replicas out of zone a lets them go to nodes of which nobody knows the zone.
#
# Guess before the run: notin (a) selects nodes that have a zone, another one than a.
# Seen: a node without the label matches, by labels and by node affinity; with "zone, zone notin (a)" it does not.
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
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

func main() {
	nodes := []map[string]string{{"zone": "a"}, {"zone": "b"}, {}}
	seen := ""
	for _, text := range []string{"zone notin (a)", "zone != a", "zone, zone notin (a)"} {
		selector, err := labels.Parse(text)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%-22s", text)
		for _, node := range nodes {
			match := selector.Matches(labels.Set(node))
			fmt.Printf(" %v: %v", node, match)
			seen += fmt.Sprint(match, " ")
		}
		fmt.Println()
	}
	rule := v1.NodeSelectorRequirement{Key: "zone", Operator: v1.NodeSelectorOpNotIn, Values: []string{"a"}}
	affinity, err := nodeaffinity.NewNodeSelector(&v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{
		{MatchExpressions: []v1.NodeSelectorRequirement{rule}}}})
	if err != nil {
		panic(err)
	}
	fmt.Print("node affinity NotIn   ")
	for _, node := range nodes {
		match := affinity.Match(&v1.Node{ObjectMeta: meta.ObjectMeta{Labels: node}})
		fmt.Printf(" %v: %v", node, match)
		seen += fmt.Sprint(match, " ")
	}
	fmt.Println()
	if seen != "false true true false true true false true false false true true " {
		fmt.Println("the behaviour has changed")
		os.Exit(1)
	}
}
GO
export GOFLAGS=-mod=mod
go mod init finding > /dev/null 2>&1
go get k8s.io/api@v0.34.1 k8s.io/apimachinery@v0.34.1 k8s.io/component-helpers@v0.34.1 > /dev/null 2>&1
echo "k8s.io/apimachinery $(go list -m -f '{{.Version}}' k8s.io/apimachinery)"
go run . 2> log || { cat log; exit 1; }
