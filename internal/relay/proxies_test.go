package relay

import (
	"net/netip"
	"testing"
)

// What is kept of callers behind proxies is bounded.
func TestKnownCallersAreBounded(t *testing.T) {
	g := newRig(t)
	st := g.stands[0]
	st.do(func() {
		for i := range 3 * maxKnown {
			a := netip.AddrFrom4([4]byte{203, 0, byte(i >> 8), byte(i)})
			if w := st.known(Caller{Address: a.String()}); w.Address != a.String() || st.known(w.Caller) != w {
				t.Errorf("%s is %v", a, w)
			}
		}
		if len(st.people) > maxKnown {
			t.Errorf("%d are kept", len(st.people))
		}
	})
}
