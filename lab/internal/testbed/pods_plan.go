package testbed

import "net/netip"

// The addresses. 10.0.0.0/8 is that of clusters, and nobody else is in the namespace.
const (
	// node is that from which callers come.
	node = "10.0.0.1"
	// Service is the one that stands for all pods.
	Service = "10.96.0.1"
	// mostPods is how many addresses there are.
	mostPods = 1000
)

// Pod returns the address of pod i, from 0 on.
func Pod(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 244, byte(i / 250), byte(1 + i%250)}) }

// PodPlan is what is behind the Service.
type PodPlan struct {
	// Port is that of the Service and of all pods.
	Port uint16 `json:"port"`
	// Pods are the addresses, of IPv4, of those that get new connections. Connections that
	// there are stay where they are.
	Pods []netip.Addr `json:"pods"`
}
