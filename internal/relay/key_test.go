package relay

import (
	"fmt"
	"hash/maphash"
	"strings"
	"testing"
	"time"
)

func by(source KeySource, metadata ...string) func(*Options) {
	return func(o *Options) { o.Keys.By, o.Keys.Metadata = source, strings.Join(metadata, "") }
}

// How long a key is kept follows from how long its bucket takes to fill.
func TestKeyIdleTime(t *testing.T) {
	for _, c := range []struct {
		rate  float64
		burst int
		want  time.Duration
	}{{0, 0, minKeyIdle}, {10, 10, minKeyIdle}, {.5, 100, 200 * time.Second}, {.01, 1e6, maxKeyIdle}} {
		o := Options{Keys: Keys{Rate: c.rate, Burst: c.burst}}
		if got := o.keyIdle(); got != c.want {
			t.Errorf("%d calls at %v a second: %v, want %v", c.burst, c.rate, got, c.want)
		}
	}
}

// However many keys callers bring, a bounded number is told apart, and a
// bounded number is kept.
func TestKeysAreBounded(t *testing.T) {
	g := newRig(t, by(ByMetadata, "x-tenant"))
	st := g.shards[0]
	st.do(func() {
		ring := &st.keys
		open := func(i int) *key { text := fmt.Append(nil, i); return ring.open(text, text) }
		var used []*key
		for i := range maxKeys + 2 {
			used = append(used, open(i))
		}
		if used[maxKeys-1] == ring.others || used[maxKeys] != ring.others || used[maxKeys+1] != ring.others {
			t.Error("the bound is not where it should be")
		}
		for _, k := range used {
			ring.drop(k)
		}
		for i := range 2 * maxIdleKeys {
			ring.drop(open(-i))
		}
		if ring.idle != maxIdleKeys || len(ring.byName) != maxIdleKeys || ring.others.refs != 0 {
			t.Errorf("%d of %d keys are not in use, %d references to the others", ring.idle, len(ring.byName), ring.others.refs)
		}
	})
}

// By peer there are as many keys as connections may be.
func TestPeersAreBoundedByConnections(t *testing.T) {
	o := Options{Keys: Keys{By: ByPeer}, Limits: Limits{Connections: 50_000}}
	if got := o.keyLimit(); got != 50_000 {
		t.Errorf("got %d", got)
	}
	if o.Limits.Connections = 1; o.keyLimit() != maxKeys {
		t.Errorf("got %d", o.keyLimit())
	}
}

// Long keys take little memory and are told apart.
func TestLongKeys(t *testing.T) {
	n := newSettings(Options{}, maphash.MakeSeed()).naming
	long := []byte(strings.Repeat("x", maxKeyText+1))
	one, same, short := string(n.name(long, nil)), string(n.name(long, nil)), n.name(long[1:], nil)
	long[7] = 'y'
	if other := string(n.name(long, nil)); one != same || one == other || len(one) > 16 || len(short) != maxKeyText {
		t.Errorf("got %q, %q, %q and %d octets", one, same, other, len(short))
	}
}
