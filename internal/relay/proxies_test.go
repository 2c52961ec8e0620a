package relay

import (
	"net/netip"
	"testing"

	"github.com/cabrank/cabrank/internal/door"
)

// trustLoopback believes who calls from loopback.
func trustLoopback(o *Options) {
	o.Proxies = door.Proxies{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8")}
}

// Whose a call is says a proxy, of each call on its connection: workers find the caller at
// the end of x-forwarded-for. What is malformed is the proxy's own call, and whoever is no
// proxy is not asked.
func TestCallersBehindProxy(t *testing.T) {
	liar := func(*Options) {}
	for name, c := range map[string]struct {
		options func(*Options)
		sent    []string // of x-forwarded-for
		want    []string
	}{
		"a caller":               {trustLoopback, []string{"203.0.113.7"}, []string{"203.0.113.7"}},
		"proxies behind it":      {trustLoopback, []string{"1.1.1.1, 203.0.113.7, 10.1.1.1"}, []string{"1.1.1.1, 203.0.113.7"}},
		"several fields":         {trustLoopback, []string{"1.1.1.1", "203.0.113.7:80", "10.1.1.1"}, []string{"1.1.1.1, 203.0.113.7"}},
		"as IPv6":                {trustLoopback, []string{"::ffff:203.0.113.7"}, []string{"203.0.113.7"}},
		"nobody":                 {trustLoopback, nil, []string{"127.0.0.1"}},
		"proxies alone":          {trustLoopback, []string{"10.1.1.1"}, []string{"10.1.1.1, 127.0.0.1"}},
		"malformed":              {trustLoopback, []string{"203.0.113.7, x"}, []string{"203.0.113.7, x, 127.0.0.1"}},
		"a liar":                 {liar, []string{"203.0.113.7"}, []string{"203.0.113.7, 127.0.0.1"}},
		"a liar, several fields": {liar, []string{"203.0.113.7", "x"}, []string{"203.0.113.7", "x, 127.0.0.1"}},
	} {
		t.Run(name, func(t *testing.T) {
			addresses := make(chan string, 3)
			g := newRig(t, c.options, func(o *Options) {
				o.Access = func(a *Access) { addresses <- a.Caller.Address }
			})
			_, accept := g.worker("w1", 4)
			caller := g.caller()
			worker := caller
			list, want := request(hello), request(hello)
			for _, value := range c.sent {
				list = append(list, "x-forwarded-for", value)
			}
			for _, value := range c.want {
				want = append(want, "x-forwarded-for", value)
			}
			for i := range 3 { // as it came, and the same block again
				stream := uint32(1 + 2*i)
				caller.WriteHeaders(stream, end, list...)
				if i == 0 {
					worker = accept()
				}
				worker.WantFields(stream, end, passedOn(want)...)
				reply(worker, stream)
				wantReply(caller, stream)
			}
			last := c.want[len(c.want)-1]
			for range 3 {
				if got := <-addresses; got != callerOf(last) {
					t.Errorf("the access log has %s, workers %s", got, last)
				}
			}
		})
	}
}

// callerOf returns the last entry.
func callerOf(list string) string {
	caller, _, _ := door.Proxies(nil).Caller(list)
	return caller
}

// Callers behind one proxy have a share and limits each, whichever connection of it
// their calls come by; a reload has others be believed.
func TestCallersBehindProxyAreTold(t *testing.T) {
	g := newRig(t, trustLoopback, func(o *Options) { o.Keys = Keys{By: ByPeer, Concurrent: 1} })
	_, accept := g.worker("w1", 8)
	from := func(address string) []string { return request(hello, "x-forwarded-for", address) }
	first, second := g.caller(), g.caller()
	first.WriteHeaders(1, end, from("203.0.113.7")...)
	worker := accept()
	worker.WantHeaders(1, end)
	first.WriteHeaders(3, end, from("203.0.113.8")...)
	worker.WantHeaders(3, end)
	for _, again := range []string{"203.0.113.7", "203.0.113.8"} {
		stream := map[string]uint32{"203.0.113.7": 1, "203.0.113.8": 3}[again]
		second.WriteHeaders(stream, end, from(again)...)
		wantStatus(second, stream, "8", "cabrank: too many calls")
	}
	second.WriteHeaders(5, end, request(hello)...) // the proxy's own
	worker.WantHeaders(5, end)

	o := options(nil)
	o.Keys = Keys{By: ByPeer, Concurrent: 2}
	g.Reconfigure(o)
	second.WriteHeaders(7, end, from("203.0.113.9")...)
	worker.WantHeaders(7, end)
	second.WriteHeaders(9, end, from("203.0.113.10")...)
	wantStatus(second, 9, "8", "cabrank: too many calls")
	for stream := uint32(1); stream <= 7; stream += 2 {
		reply(worker, stream)
	}
	wantReply(first, 1)
	wantReply(first, 3)
	wantReply(second, 5)
	wantReply(second, 7)
}

// What is kept of callers behind proxies is bounded.
func TestKnownCallersAreBounded(t *testing.T) {
	g := newRig(t, trustLoopback)
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
