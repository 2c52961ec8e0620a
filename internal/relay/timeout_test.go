package relay

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/testkit"
)

// A frame may have been sent after the shard's loop read the clock. A worker's CANCEL at the
// deadline still counts as the deadline (R13), and a status that its library makes then does
// not free its thread (R5). 3 ms earlier neither holds.
func TestDeadlineInALongTurn(t *testing.T) {
	const grpcWord = "Deadline Exceeded"
	deadline := func(p *testkit.Peer) { wantStatus(p, 1, "4", "cabrank: deadline exceeded") }
	cancel := func(p *testkit.Peer) { p.WantRST(1, http2.ErrCodeCancel) }
	answer := func(p *testkit.Peer) { wantStatus(p, 1, "4", grpcWord) }
	reset := func(f *http2.Framer) error { return f.WriteRSTStream(1, http2.ErrCodeCancel) }
	status := func(f *http2.Framer) error {
		block := h2.AppendField(nil, ":status", "200")
		block = h2.AppendField(block, "content-type", "application/grpc")
		block = h2.AppendField(block, "grpc-status", "4")
		block = h2.AppendField(block, "grpc-message", grpcWord)
		return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block, EndStream: true, EndHeaders: true})
	}
	for name, c := range map[string]struct {
		sent   time.Duration // by the worker, after the call has come
		frame  func(*http2.Framer) error
		want   func(*testkit.Peer)
		ghosts int
	}{
		"CANCEL at the deadline": {100 * time.Millisecond, reset, deadline, 1},
		"CANCEL before it":       {97 * time.Millisecond, reset, cancel, 0},
		"status at the deadline": {100 * time.Millisecond, status, answer, 1},
		"status before it":       {97 * time.Millisecond, status, answer, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newPipeRig(t, func(o *Options) { o.OnCancel = rank.Hold })
				e, worker := g.pipeWorker("w1", 1)
				caller := g.pipeCaller()
				caller.WriteHeaders(1, end, request(hello, "grpc-timeout", "100m")...)
				worker.WantHeaders(1, end)
				pass(90 * time.Millisecond)
				g.readLate(e, c.sent-90*time.Millisecond, c.frame)
				c.want(caller)
				synctest.Wait()
				if got := g.Rank().Endpoints[0].Ghosts; got != c.ghosts {
					t.Errorf("ghosts: got %d, want %d", got, c.ghosts)
				}
				pass(time.Minute) // no ghost is left
			})
		})
	}
}

// readLate has a turn look at the clock, and only after a while read what the worker
// has sent.
func (g *rig) readLate(e *Endpoint, after time.Duration, write func(*http2.Framer) error) {
	g.t.Helper()
	var sent bytes.Buffer
	testkit.Must(g.t, write(http2.NewFramer(&sent, nil)))
	st := g.shards[0]
	st.do(func() {
		pass(after)
		if err := st.upstreamOf(e.slots).conns[0].link.Conn.Feed(sent.Bytes(), st.Now()); err != nil {
			g.t.Error(err)
		}
	})
}

// late takes deadlines as peers see them.
func TestLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &call{st: &shardState{relay: &Relay{start: time.Now()}}, callFields: callFields{deadline: time.Second}}
		pass(time.Second - 2*clockSkew)
		if c.late() {
			t.Error("late before the deadline")
		}
		pass(clockSkew)
		if !c.late() || (&call{}).late() {
			t.Error("not late at the deadline, or late without one")
		}
	})
	if codeOfReset(0) != grpcwire.Internal {
		t.Error("an answer without an end is Internal")
	}
}
