package relay

import (
	"testing"
	"testing/synctest"

	"github.com/cabrank/cabrank/internal/testkit"
)

// The memory of the container bounds buffers and connections, unless the options bound them
// more; a reload does not undo that.
func TestSetMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		o := g.settings().Options
		want := func(what string, buffers, connections int64) {
			t.Helper()
			if b, c := g.bufferTotal(), g.mostConnections(); b != buffers || c != connections {
				t.Errorf("%s: %d bytes and %d connections, want %d and %d", what, b, c, buffers, connections)
			}
		}
		want("no word", o.BufferTotal, 1000)
		g.SetMemory(20 << 20)
		want("20 MiB", 10<<20, 640)
		o.BufferTotal = 8 << 20
		g.Reconfigure(o)
		want("20 MiB, 8 for buffers", 8<<20, 640)
		g.SetMemory(1)
		want("one byte", leastBuffers, leastConnections)
		g.SetMemory(1 << 40)
		want("plenty", 8<<20, 1000)
		testkit.Equal(t, g.budget.Total, 8<<20, "the budget")
	})
}
