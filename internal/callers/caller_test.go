package callers

import (
	"fmt"
	"hash/maphash"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/testkit"
)

// Shares are given to identities by their names, also when the configuration is
// loaded again.
func TestSharesOfIdentities(t *testing.T) {
	n := Naming{Keys: Keys{Weights: map[string]float64{"alice": 4}}}
	testkit.Equal(t, n.Terms(identityKey+"alice").Weight, 4, "alice has a weight of")
	testkit.Equal(t, n.Terms("192.0.2.1").Weight, 0, "a stranger has a weight of")
}

// The log names a caller by what is known of it.
func TestNamesOfCallers(t *testing.T) {
	for want, c := range map[string]Caller{
		"": {}, "192.0.2.1": {Address: "192.0.2.1"}, "alice": {Identity: "alice"},
		"alice at 192.0.2.1": {Address: "192.0.2.1", Identity: "alice"},
	} {
		id := (&ID{Caller: c})
		testkit.Want(t, id.String() == want, "%+v is named %q", c, id)
	}
}

// The memory for callers behind proxies is bounded.
func TestKnownCallersAreBounded(t *testing.T) {
	ids := NewIDs(maphash.MakeSeed())
	for i := range 3 * maxShared {
		a := netip.AddrFrom4([4]byte{203, 0, byte(i >> 8), byte(i)})
		id := ids.Of(Caller{Address: a.String()})
		testkit.Want(t, id.Address == a.String() && ids.Of(id.Caller) == id, "%s is %v", a, id)
	}
	testkit.Want(t, len(ids.shared) <= maxShared, "%d are kept", len(ids.shared))
}

// Remembered tokens are bounded in bytes, and those in use stay.
func TestKnownTokensAreBounded(t *testing.T) {
	var known Passes
	p := NewKnownPass(Pass{}, 1, 0, time.Time{})
	known.Remember("used", p)
	for i := range 100_000 {
		known.Remember(fmt.Sprint(i), p)
		testkit.Need(t, known.Find([]byte("used"), 1, time.Second) != nil, "it is forgotten after %d", i)
	}
	n := len(known.recent) + len(known.old)
	testkit.Want(t, n*passSize <= maxPassBytes, "%d are remembered", n)
}

// A path has to be allowed as it was sent, and as a worker may read it.
func TestPathsThatTokensAllow(t *testing.T) {
	public := &Pass{May: func(path string) bool { return strings.HasPrefix(path, "/public/") }}
	for name, want := range map[string]bool{
		"/public/a": true, "/public/": true, "/public/a/": true, "/public//a": true, "/public/a%20b": true, "/public/./a": true,
		"/admin": false, "/public/../admin": false, "/public/%2e%2E/admin": false, "/public/..%2fadmin": false, `/public/..\admin`: false,
		"/public/%5c..%5c..%5cadmin": false, "/public/..": false, "//public/a": false, "/public/%zz": false,
	} {
		testkit.Equal(t, public.Allows(name), want, "%s", name)
	}
}

// Addresses of one IPv6 network are one source, and unknown ones have no share.
func TestSourceKey(t *testing.T) {
	same := func(a, b string) bool { return sourceKey(a) == sourceKey(b) }
	testkit.Want(t, same("2001:db8::1", "2001:db8::ffff:1") && !same("2001:db8::1", "2001:db8:0:1::1"), "networks of IPv6")
	testkit.Want(t, !same("192.0.2.1", "192.0.2.2") && same("192.0.2.1", "::ffff:192.0.2.1") && same("fe80::1%eth0", "fe80::1"),
		"addresses")
	testkit.Want(t, !sourceKey("").IsValid(), "a Unix socket has an address")
}

// The record of a source goes with its last connection.
func TestSourcesAreForgotten(t *testing.T) {
	var s Sources
	s.Init([]sync.Locker{new(sync.Mutex)})
	for i := range 1000 {
		address := fmt.Sprintf("10.0.%d.%d", i/250, i%250)
		first, _ := s.add(address)
		second, count := s.add(address)
		s.Open.Add(2)
		testkit.Need(t, first == second && count == 2, "%s has %d connections, want 2", address, count)
		s.Leave(first)
		s.Leave(first)
	}
	testkit.Want(t, len(s.all) == 0 && s.Open.Load() == 0, "%d sources and %d connections are left", len(s.all), s.Open.Load())
	for class := range s.classes {
		if from := s.classes[class].First(); from != nil {
			t.Errorf("class %d has %v", class, from.key)
		}
	}
}

// How long a key is kept follows from how long its bucket takes to fill.
func TestKeyIdleTime(t *testing.T) {
	for _, c := range []struct {
		rate  float64
		burst int
		want  time.Duration
	}{{0, 0, MinKeyIdle}, {10, 10, MinKeyIdle}, {.5, 100, 200 * time.Second}, {.01, 1e6, maxKeyIdle}} {
		n := Naming{Keys: Keys{Rate: c.rate, Burst: c.burst}}
		testkit.Equal(t, n.idleTime(), c.want, "%d calls at %v a second", c.burst, c.rate)
	}
}

// However many keys callers bring, a bounded number is told apart, and a
// bounded number is kept.
func TestKeysAreBounded(t *testing.T) {
	naming := &Naming{Keys: Keys{By: ByMetadata, Metadata: "x-tenant"}, Seed: maphash.MakeSeed()}
	var inUse atomic.Int64
	ring := NewKeyring(naming, rank.New(rank.Options{}), &inUse, func(time.Duration) {})
	open := func(i int) *Key { return ring.OfText(nil, fmt.Append(nil, i), 0) }
	var used []*Key
	for i := range maxKeys + 2 {
		used = append(used, open(i))
	}
	testkit.Want(t, used[maxKeys-1] != ring.others && used[maxKeys] == ring.others && used[maxKeys+1] == ring.others,
		"the bound is not where it should be")
	for _, k := range used {
		ring.Drop(k, 0)
	}
	for i := range 2 * maxIdleKeys {
		ring.Drop(open(-i), 0)
	}
	if ring.idle != maxIdleKeys || len(ring.byName) != maxIdleKeys || ring.others.refs != 0 || inUse.Load() != 0 {
		t.Errorf("%d of %d keys are not in use, %d references to the others, %d count as in use", ring.idle, len(ring.byName), ring.others.refs, inUse.Load())
	}
	ring.Expire(MinKeyIdle)
	testkit.Want(t, ring.idle == 0 && len(ring.byName) == 0, "%d of %d keys are left", ring.idle, len(ring.byName))
}

// By peer there are as many keys as connections may be.
func TestPeersAreBoundedByConnections(t *testing.T) {
	n := Naming{Keys: Keys{By: ByPeer}, Connections: 50_000}
	if got := n.mostInUse(); got != 50_000 {
		t.Errorf("got %d", got)
	}
	if n.Connections = 1; n.mostInUse() != maxKeys {
		t.Errorf("got %d", n.mostInUse())
	}
}

// Long keys take little memory and are told apart.
func TestLongKeys(t *testing.T) {
	seed := maphash.MakeSeed()
	long := []byte(strings.Repeat("x", MaxKeyText+1))
	one, same, short := string(nameOf(long, nil, seed)), string(nameOf(long, nil, seed)), nameOf(long[1:], nil, seed)
	long[7] = 'y'
	if other := string(nameOf(long, nil, seed)); one != same || one == other || len(one) > 16 || len(short) != MaxKeyText {
		t.Errorf("got %q, %q, %q and %d octets", one, same, other, len(short))
	}
}
