//go:build !race

package report

import (
	"runtime"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/traffic"
	"github.com/cabrank/cabrank/lab/test/made"
)

// A page of a large run stays small, and reading its records takes little memory.
func TestLargeRun(t *testing.T) {
	r := madeUp(t, made.Options{
		Arms:  []string{"round-robin", "random", "least-request", "dnat", "haproxy", "envoy", "nginx", "cabrank"},
		Rates: []int{10, 20, 30, 40, 50, 60, 70, 80}, Rounds: 5, Seconds: 60, Effect: 0.9, Workers: 9, Pause: true,
	})
	runtime.GC()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	most, reads, read := uint64(0), 0, r.Record
	r.Record = func(b *result.Block) (*traffic.Record, error) {
		if reads++; reads%16 == 0 { // what lives, not what the collector has yet to find
			runtime.GC()
			runtime.ReadMemStats(&now)
			most = max(most, now.HeapAlloc)
		}
		return read(b)
	}
	text := r.Document().HTML()
	t.Logf("%d blocks, %d read, %d KB, %d KB of heap", len(r.Result.Blocks), reads, len(text)>>10, (most-before.HeapAlloc)>>10)
	testkit.Want(t, len(text) <= 1_000_000, "%d bytes", len(text))
	if grown := most - before.HeapAlloc; grown > 16<<20 {
		t.Errorf("%d bytes of heap for the records", grown)
	}
}
