package relay

import (
	"io"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/cabrank/cabrank/internal/grpcwire"
)

// Callers that share a connection in this process are told apart call by call, also
// where their HEADERS are the same in every octet: workers see the address of each,
// and each is an account of its own. An identity is never taken for an address.
func TestLocalCallersAreToldApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		_, worker := g.pipeWorker("w1", 1)
		l := g.local(Caller{Door: "web"})
		var c LocalCall
		id := uint32(1)
		for _, from := range []Caller{
			{Address: "192.0.2.1"}, {Address: "192.0.2.2"}, {Address: "192.0.2.2"},
			{Address: "192.0.2.1", Identity: "192.0.2.2", Door: "socket"}, {Identity: "alice"}, {},
		} {
			for range 3 { // the third time the block is known
				open(t, l, &c, LocalRequest{Head: headOf(request(hello)...), End: true, Caller: &from})
				want := request(hello)
				if from.Address != "" {
					want = append(want, "x-forwarded-for", from.Address)
				}
				worker.WantFields(id, end, passedOn(want)...)
				reply(worker, id)
				wantAnswer(t, &c)
				c.Close()
				id += 2
			}
		}
		want := []string{identityKey + "192.0.2.2", identityKey + "alice", "192.0.2.1", "192.0.2.2", unixPeer}
		if got := g.keyNames(); !slices.Equal(got, want) {
			t.Errorf("keys: %q, want %q", got, want)
		}
		if doors := g.Stats().Doors; len(doors["web"]) != 0 || doors["socket"]["OK"] != 3 || doors[""]["OK"] != 15 {
			t.Errorf("doors: %v", doors)
		}
	})
}

// Each has limits of its own, whatever connection its calls come over, and a caller
// over a socket cannot take another's account by what it sends.
func TestLocalCallersHaveLimitsOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t, func(o *Options) { o.Keys = Keys{By: ByPeer, Rate: 0.01, Burst: 1} })
		_, worker := g.pipeWorker("w1", 1)
		socket := g.pipeCaller()
		socket.WriteHeaders(1, end, request(hello, "x-forwarded-for", "192.0.2.1")...)
		worker.WantHeaders(1, end)
		reply(worker, 1)
		wantReply(socket, 1)
		one, other := g.local(Caller{Address: "192.0.2.1"}), g.local(Caller{Address: "192.0.2.1"})
		alice := g.local(Caller{Address: "192.0.2.1", Identity: "alice"})
		bob := Caller{Identity: "bob"}
		id := uint32(3)
		for _, ask := range []struct {
			local  *Local
			caller *Caller
			served bool
		}{{one, nil, true}, {other, nil, false}, {alice, nil, true}, {alice, nil, false}, {alice, &bob, true}, {other, &bob, false}} {
			var c LocalCall
			open(t, ask.local, &c, LocalRequest{Head: headOf(request(hello)...), End: true, Caller: ask.caller})
			if ask.served {
				worker.WantHeaders(id, end)
				reply(worker, id)
				wantAnswer(t, &c)
				id += 2
			} else {
				_, _ = io.ReadAll(&c)
				wantCode(t, &c, grpcwire.ResourceExhausted, "cabrank: rate limit")
			}
			c.Close()
		}
	})
}

// Shares are given to identities by their names, also when the configuration is
// loaded again.
func TestSharesOfIdentities(t *testing.T) {
	n := naming{Keys: Keys{Weights: map[string]float64{"alice": 4}}}
	if w := n.termsOf(identityKey + "alice").Weight; w != 4 {
		t.Errorf("alice has a weight of %v", w)
	}
	if w := n.termsOf("192.0.2.1").Weight; w != 0 {
		t.Errorf("a stranger has a weight of %v", w)
	}
}

// The log names a caller by what is known of it.
func TestNamesOfCallers(t *testing.T) {
	for want, c := range map[string]Caller{
		"": {}, "192.0.2.1": {Address: "192.0.2.1"}, "alice": {Identity: "alice"},
		"alice at 192.0.2.1": {Address: "192.0.2.1", Identity: "alice"},
	} {
		if w := (&who{Caller: c}); w.String() != want {
			t.Errorf("%+v is named %q", c, w)
		}
	}
}
