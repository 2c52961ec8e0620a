package relay

import (
	"bytes"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/testkit"
)

// grpc-timeout arrives less the time that the call has waited, in at most 8
// digits and never as zero.
func TestTimeoutIsReduced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		_, worker := g.pipeWorker("w1", 1)
		caller := g.pipeCaller()
		for i, c := range []struct {
			sent string
			wait time.Duration
			want string
		}{
			{"10S", 0, "10000000u"},
			{"10S", 2500 * time.Millisecond, "7500000u"},
			{"100m", 99 * time.Millisecond, "1000000n"},
			{"1000000n", 0, "1000000n"},
			{"00000001H", time.Second, "3599000m"},
			{"99999999S", 20 * time.Second, "99999979S"},
			{"5M", time.Second, "299000m"},
		} {
			stream := uint32(1 + 4*i)
			// The one slot is taken for as long as the call has to wait.
			caller.WriteHeaders(stream, end, request(hello)...)
			worker.WantHeaders(stream, end)
			caller.WriteHeaders(stream+2, end, request(hello, "grpc-timeout", c.sent)...)
			if c.wait > 0 {
				pass(c.wait)
			}
			reply(worker, stream)
			got := testkit.Value(worker.WantHeaders(stream+2, end), "grpc-timeout")
			if got != c.want {
				t.Errorf("%s after %v: got %s, want %s", c.sent, c.wait, got, c.want)
			}
			reply(worker, stream+2)
			wantReply(caller, stream)
			wantReply(caller, stream+2)
		}
	})
}

// A deadline ends the call at its instant, wherever the call is; the worker's
// stream is cancelled.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		_, worker := g.pipeWorker("w1", 1)
		caller := g.pipeCaller()
		began := time.Now()
		caller.WriteHeaders(1, end, request(hello, "grpc-timeout", "300m")...)
		worker.WantHeaders(1, end)
		caller.WriteHeaders(3, end, request(hello, "grpc-timeout", "200m")...)
		wantStatus(caller, 3, "4", "cabrank: deadline exceeded in queue")
		wantTook(t, began, 200*time.Millisecond)
		wantStatus(caller, 1, "4", "cabrank: deadline exceeded")
		wantTook(t, began, 300*time.Millisecond)
		worker.WantRST(1, http2.ErrCodeCancel)
		worker.WantIdle()
	})
}

func wantTook(t *testing.T, began time.Time, want time.Duration) {
	t.Helper()
	// The wheel is exact to a tick, and never early.
	if took := time.Since(began); took < want || took > want+2*time.Millisecond {
		t.Errorf("took %v, want %v", took, want)
	}
}

// A deadline of zero has passed when the call comes.
func TestDeadlineZero(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		caller := g.pipeCaller()
		began := time.Now()
		caller.WriteHeaders(1, end, request(hello, "grpc-timeout", "0n")...)
		wantStatus(caller, 1, "4", "cabrank: deadline exceeded in queue")
		wantTook(t, began, 0)
	})
}

// A deadline in the middle of an answer comes as trailers.
func TestDeadlineAfterHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		_, worker := g.pipeWorker("w1", 1)
		caller := g.pipeCaller()
		caller.WriteHeaders(1, noEnd, request(hello, "grpc-timeout", "1S")...)
		worker.WantHeaders(1, noEnd)
		worker.WriteHeaders(1, noEnd, responseHead()...)
		worker.WriteData(1, noEnd, hi())
		caller.WantFields(1, noEnd, responseHead()...)
		caller.WantDataBytes(1, hi(), noEnd)
		caller.WantFields(1, end, "grpc-status", "4", "grpc-message", "cabrank: deadline exceeded")
		caller.WantRST(1, http2.ErrCodeNo)
		worker.WantRST(1, http2.ErrCodeCancel)
	})
}

// server.proxy_timeout bounds every call from its grant on and is told to the
// worker; a shorter deadline of the caller's counts.
func TestProxyTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t, func(o *Options) { o.CallTimeout = time.Second })
		_, worker := g.pipeWorker("w1", 2)
		caller := g.pipeCaller()
		began := time.Now()
		caller.WriteHeaders(1, end, request(hello)...)
		worker.WantFields(1, end, append(passedOn(request(hello)), "grpc-timeout", "1000000u")...)
		caller.WriteHeaders(3, end, request(hello, "grpc-timeout", "400m")...)
		worker.WantFields(3, end, passedOn(request(hello, "grpc-timeout", "400000u"))...)
		wantStatus(caller, 3, "4", "cabrank: deadline exceeded")
		wantTook(t, began, 400*time.Millisecond)
		worker.WantRST(3, http2.ErrCodeCancel)
		wantStatus(caller, 1, "4", "cabrank: deadline exceeded")
		wantTook(t, began, time.Second)
		worker.WantRST(1, http2.ErrCodeCancel)
	})
}

// R10: queue.timeout bounds the wait, and the answer tells a full house from an
// empty one. Time at a worker does not count.
func TestQueueTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t, withQueue(9, time.Second))
		caller := g.pipeCaller()
		began := time.Now()
		caller.WriteHeaders(1, end, request(hello)...)
		wantStatus(caller, 1, "14", "cabrank: no worker ready")
		wantTook(t, began, time.Second)

		_, worker := g.pipeWorker("w1", 1)
		caller.WriteHeaders(3, end, request(hello)...)
		worker.WantHeaders(1, end)
		caller.WriteHeaders(5, end, request(hello)...)
		wantStatus(caller, 5, "8", "cabrank: no free slot in time")
		wantTook(t, began, 2*time.Second)
		reply(worker, 1)
		wantReply(caller, 3)
		for _, m := range g.Stats().Methods {
			if m.Method == otherMethod && m.Wait.Sum < 1.9 {
				t.Errorf("two calls have waited a second each, recorded: %v s", m.Wait.Sum)
			}
		}
	})
}

// While no worker will be ready soon nobody waits for one, and whoever is up all
// the same serves.
func TestOutageIsToldAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t, withQueue(9, time.Minute))
		caller := g.pipeCaller()
		began := time.Now()
		caller.WriteHeaders(1, end, request(hello)...)
		g.wantWaiting(1)
		g.Outage(true)
		wantStatus(caller, 1, "14", "cabrank: no worker ready")
		caller.WriteHeaders(3, end, request(hello)...)
		wantStatus(caller, 3, "14", "cabrank: no worker ready")
		if took := time.Since(began); took > time.Second {
			t.Errorf("told after %v", took)
		}
		if got := g.counted("no_worker"); got != 2 {
			t.Errorf("%d counted, want 2", got)
		}
		_, worker := g.pipeWorker("w1", 1)
		caller.WriteHeaders(5, end, request(hello)...)
		worker.WantHeaders(1, end)
		reply(worker, 1)
		wantReply(caller, 5)
	})
}

// A peer that was told the time left sees the deadline a little earlier than
// we do: a worker's CANCEL is the deadline then, and so is a caller's.
func TestDeadlineAtPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		_, worker := g.pipeWorker("w1", 2)
		caller := g.pipeCaller()
		open := func(stream uint32) {
			caller.WriteHeaders(stream, end, request(hello, "grpc-timeout", "100m")...)
			worker.WantHeaders(stream, end)
		}
		open(1)
		pass(50 * time.Millisecond)
		worker.WriteRST(1, http2.ErrCodeCancel)
		caller.WantRST(1, http2.ErrCodeCancel)
		open(3)
		pass(99 * time.Millisecond)
		worker.WriteRST(3, http2.ErrCodeCancel)
		wantStatus(caller, 3, "4", "cabrank: deadline exceeded")
		open(5)
		pass(50 * time.Millisecond)
		caller.WriteRST(5, http2.ErrCodeCancel)
		worker.WantRST(5, http2.ErrCodeCancel)
		open(7)
		pass(99 * time.Millisecond)
		caller.WriteRST(7, http2.ErrCodeCancel)
		worker.WantRST(7, http2.ErrCodeCancel)
		synctest.Wait()
		want := map[string]uint64{"CANCELLED": 2, "DEADLINE_EXCEEDED": 2}
		if got := g.Stats().of(t, otherMethod).Codes; !maps.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

// What a turn reads may have been sent after it looked at the clock. A worker's CANCEL
// at the deadline is the deadline all the same (R13), and a status that its library
// makes then does not free its thread (R5). 3 ms before it neither is so.
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
	if err := write(http2.NewFramer(&sent, nil)); err != nil {
		g.t.Fatal(err)
	}
	st := g.stands[0]
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
		c := &call{st: &stand{relay: &Relay{start: time.Now()}}, course: course{deadline: time.Second}}
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
