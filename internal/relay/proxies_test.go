package relay

import (
	"net/netip"
	"testing"
)

// The memory for callers behind proxies is bounded.
func TestKnownCallersAreBounded(t *testing.T) {
	g := newRig(t)
	st := g.shards[0]
	st.do(func() {
		for i := range 3 * maxCallerIDs {
			a := netip.AddrFrom4([4]byte{203, 0, byte(i >> 8), byte(i)})
			if id := st.callerIDOf(Caller{Address: a.String()}); id.Address != a.String() || st.callerIDOf(id.Caller) != id {
				t.Errorf("%s is %v", a, id)
			}
		}
		if len(st.callerIDs) > maxCallerIDs {
			t.Errorf("%d are kept", len(st.callerIDs))
		}
	})
}
