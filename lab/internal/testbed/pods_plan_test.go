package testbed

import (
	"net/netip"
	"testing"
)

// Each pod has an address of its own, and none of them is loopback or the Service.
func TestPod(t *testing.T) {
	seen := map[netip.Addr]bool{netip.MustParseAddr(Service): true, netip.MustParseAddr(node): true}
	for i := range mostPods {
		pod := Pod(i)
		if pod.IsLoopback() || !netip.MustParsePrefix("10.244.0.0/16").Contains(pod) || seen[pod] {
			t.Fatalf("pod %d is at %s", i, pod)
		}
		seen[pod] = true
	}
	if Pod(250).String() != "10.244.1.1" {
		t.Errorf("got %v", Pod(250))
	}
}
