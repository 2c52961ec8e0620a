package podnet

import (
	"fmt"
	"net/netip"
)

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
func Pod(i int) string { return fmt.Sprintf("10.244.%d.%d", i/250, 1+i%250) }

// Plan is what is behind the Service.
type Plan struct {
	// Port is that of the Service and of all pods.
	Port uint16 `json:"port"`
	// Pods are the addresses of those that get new connections. Connections that there
	// are stay where they are.
	Pods []string `json:"pods"`
}

// addresses reads them.
func (p Plan) addresses() (all []netip.Addr, err error) {
	if len(p.Pods) > mostPods {
		return nil, fmt.Errorf("%d pods: want %d at most", len(p.Pods), mostPods)
	}
	for _, text := range p.Pods {
		a, err := netip.ParseAddr(text)
		if err != nil || !a.Is4() {
			return nil, fmt.Errorf("pod %q: want an address of IPv4", text)
		}
		all = append(all, a)
	}
	return all, nil
}
