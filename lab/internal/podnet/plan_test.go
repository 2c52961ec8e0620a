package podnet

import (
	"net/netip"
	"strings"
	"testing"
)

// Each pod has an address of its own, and none of them is loopback or the Service.
func TestPod(t *testing.T) {
	seen := map[string]bool{Service: true, node: true}
	for i := range mostPods {
		pod := Pod(i)
		if a, err := netip.ParseAddr(pod); err != nil || a.IsLoopback() || !netip.MustParsePrefix("10.244.0.0/16").Contains(a) || seen[pod] {
			t.Fatalf("pod %d is at %s", i, pod)
		}
		seen[pod] = true
	}
}

func TestAddresses(t *testing.T) {
	if all, err := (Plan{Pods: []string{Pod(0), Pod(250)}}).addresses(); err != nil || len(all) != 2 || all[1].String() != "10.244.1.1" {
		t.Errorf("got %v, %v", all, err)
	}
	for _, bad := range [][]string{{"::1"}, {"pod"}, make([]string, mostPods+1)} {
		if _, err := (Plan{Pods: bad}).addresses(); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%d pods: %v", len(bad), err)
		}
	}
}
