package relay

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"testing"
	"testing/synctest"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/rank"
)

// Instances of different versions send a key to the same endpoint, so a hash
// never changes; and the hashes of keys that are nearly the same are far apart.
func TestHashes(t *testing.T) {
	for text, want := range map[string]uint64{
		"": 0xf52a15e9a9b5e89b, "user-1": 0xc499b5f8a721df58, "user-2": 0x4fb38f414590a87b,
	} {
		if got := hashOf([]byte(text)); got != want {
			t.Errorf("%q: got %#x, want %#x", text, got, want)
		}
	}
	last, differ := hashOf([]byte("user-0")), 0
	const pairs = 1000
	for i := 1; i <= pairs; i++ {
		h := hashOf(fmt.Append(nil, "user-", i))
		differ += bits.OnesCount64(h>>56 ^ last>>56)
		last = h
	}
	if mean := float64(differ) / pairs; mean < 3.5 || mean > 4.5 {
		t.Errorf("of the 8 highest bits %v differ", mean)
	}
}

// ring_hash sends calls with one key to one endpoint, whoever their callers are.
func TestKeyLeadsToOneEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t, func(o *Options) { o.Rank.Balance, o.BalanceKey = rank.RingHash, "x-user" })
		const workers, keys = 3, 10
		for i := range workers {
			_, worker := g.pipeWorker(fmt.Sprint("worker-", i), 99)
			worker.AnyOrder()
		}
		place := func() string { // of the call that has come
			for _, e := range g.Rank().Endpoints {
				if e.InFlight > 0 {
					return e.Name
				}
			}
			t.Fatal("no call")
			return ""
		}
		first := map[int]string{}
		for range 3 {
			caller := g.pipeCaller()
			for key := range keys {
				caller.WriteHeaders(uint32(1+2*key), end, request(hello, "x-user", fmt.Sprint("user-", key))...)
				synctest.Wait()
				at := place()
				caller.WriteRST(uint32(1+2*key), http2.ErrCodeCancel)
				synctest.Wait()
				if first[key] == "" {
					first[key] = at
				} else if first[key] != at {
					t.Errorf("user-%d: at %s, then at %s", key, first[key], at)
				}
			}
		}
		if used := slices.Compact(slices.Sorted(maps.Values(first))); len(used) < 2 {
			t.Errorf("only %v were used", used)
		}
	})
}
