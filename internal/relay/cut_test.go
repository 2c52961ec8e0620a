package relay

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/testkit"
)

const draining = "cabrank: worker draining"

// R17: calls that may not run elsewhere are answered when their worker has to go,
// before and after their response HEADERS; those that the worker has not seen
// move, and nothing is left there.
func TestCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		e, worker := g.pipeWorker("w1", 4)
		caller := g.pipeCaller()
		caller.AnyOrder()
		caller.WriteHeaders(1, end, request(hello)...)
		caller.WriteHeaders(3, end, request(hello)...)
		worker.WantHeaders(1, end)
		worker.WantHeaders(3, end)
		worker.WriteHeaders(3, noEnd, responseHead()...)
		worker.WriteData(3, noEnd, hi())
		caller.WantFields(3, noEnd, responseHead()...)
		caller.WantDataBytes(3, hi(), noEnd)
		worker.StopReading()
		for _, stream := range []uint32{5, 7} { // one is being written, one stays in our buffer
			caller.WriteHeaders(stream, end, request(hello)...)
			synctest.Wait()
		}
		g.wantInFlight(4)
		g.Cut(e)
		wantStatus(caller, 1, "14", draining)
		wantStatus(caller, 5, "14", draining)
		caller.WantFields(3, end, "grpc-status", "14", "grpc-message", draining)
		g.wantInFlight(0)
		g.wantWaiting(1)
		_, other := g.pipeWorker("w2", 1)
		other.WantHeaders(1, end)
		reply(other, 1)
		wantReply(caller, 7)
		if n := g.counted("worker_draining"); n != 3 {
			t.Errorf("counted %d times, want 3", n)
		}
		if a := g.Activity(e); a.Served != 3 || a.Cuts != 3 || !a.Oldest.IsZero() {
			t.Errorf("served %d, cut %d, oldest %v; want 3, 3, none", a.Served, a.Cuts, a.Oldest)
		}
	})
}

// A6: what may run twice and has not been answered moves at a cut, whatever the
// retry budget says; what has been answered, or has had all its retries, ends.
func TestCutRetries(t *testing.T) {
	for name, c := range map[string]struct {
		rule  MethodRule
		begun bool
		moves bool
	}{
		"idempotent":       {twice(), false, true},
		"no retries":       {MethodRule{Idempotent: true}, false, false},
		"answer has begun": {twice(), true, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newPipeRig(t, withRule(c.rule), func(o *Options) { o.RetryBudget = RetryBudget{} })
				e, worker := g.pipeWorker("w1", 1)
				caller := g.pipeCaller()
				caller.WriteHeaders(1, end, request(hello)...)
				worker.WantHeaders(1, end)
				pass(time.Second)
				if c.begun {
					worker.WriteHeaders(1, noEnd, responseHead()...)
					caller.WantFields(1, noEnd, responseHead()...)
				}
				g.Cut(e)
				worker.WantRST(1, http2.ErrCodeCancel)
				_, other := g.pipeWorker("w2", 1)
				switch {
				case c.moves:
					other.WantFields(1, end, append(passedOn(request(hello)), triesName, "1")...)
					reply(other, 1)
					wantReply(caller, 1)
				case c.begun:
					caller.WantFields(1, end, "grpc-status", "14", "grpc-message", draining)
				default:
					wantStatus(caller, 1, "14", draining)
				}
				if n := g.Stats().Retries["worker_draining"]; (n == 1) != c.moves {
					t.Errorf("%d retries", n)
				}
			})
		})
	}
}

// A hedge goes on when the first attempt is cut off, and the other way round.
func TestCutInARace(t *testing.T) {
	for first := range 2 {
		t.Run(strconv.Itoa(first), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRace(t)
				r.hedge()
				r.Cut(r.endpointNamed([]string{"w1", "w2"}[first]))
				gone, stays := r.w1, r.w2
				if first == 1 {
					gone, stays = r.w2, r.w1
				}
				gone.WantRST(1, http2.ErrCodeCancel)
				reply(stays, 1)
				wantReply(r.caller, 1)
			})
		})
	}
}

// endpointNamed returns an endpoint by its name.
func (g *rig) endpointNamed(name string) *Endpoint {
	g.t.Helper()
	for _, e := range g.allEndpoints() {
		if e.name == name {
			return e
		}
	}
	g.t.Fatalf("no endpoint %s", name)
	return nil
}

// R5: a call that nobody waits for ends with its worker, and so does the slot that
// is held for one.
func TestCutEndsGhosts(t *testing.T) {
	for name, how := range map[string]rank.OnCancel{"hold": rank.Hold, "finish": rank.Finish} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newPipeRig(t, func(o *Options) { o.OnCancel = how })
				e, worker := g.pipeWorker("w1", 1)
				caller := g.pipeCaller()
				caller.WriteHeaders(1, end, request(hello)...)
				worker.WantHeaders(1, end)
				caller.WriteRST(1, http2.ErrCodeCancel)
				if how == rank.Hold {
					worker.WantRST(1, http2.ErrCodeCancel)
				}
				synctest.Wait()
				g.Cut(e)
				synctest.Wait()
				if s := g.Rank().Endpoints[0]; s.InFlight != 0 || s.Paused != 0 || s.Ghosts != 0 {
					t.Errorf("left at the endpoint: %+v", s)
				}
				if how == rank.Finish {
					worker.WantRST(1, http2.ErrCodeCancel)
				}
			})
		})
	}
}

// R4: a grant that is on its way when its endpoint is cut off moves.
func TestCutMeetsAGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		e, worker := g.pipeWorker("w1", 1)
		caller := g.pipeCaller()
		caller.AnyOrder()
		caller.WriteHeaders(1, end, request(hello)...)
		worker.WantHeaders(1, end)
		caller.WriteHeaders(3, end, request(hello)...)
		g.wantWaiting(1)
		synctest.Wait()
		st := g.stands[0]
		st.Lock() // the grant is posted, and nobody takes it
		first := st.someCall()
		first.fail(endedDeadline, st.Now())
		now := st.Now()
		g.rank.SetReady(e.slots, false, now, nil)
		st.upstreamOf(e.slots).cut(now)
		st.Unlock()
		wantStatus(caller, 1, "4", "cabrank: deadline exceeded")
		_, other := g.pipeWorker("w2", 1)
		other.WantHeaders(1, end)
		reply(other, 1)
		wantReply(caller, 3)
	})
}

// someCall returns a call that has a stream to a worker.
func (st *stand) someCall() (c *call) {
	for _, u := range st.upstreams {
		for _, uc := range u.conns {
			uc.link.Conn.Each(func(s *h2.Stream) { c = s.Owner.(*attempt).call })
		}
	}
	return c
}

// R17: an endpoint that was cut off takes calls again when it is up.
func TestUpAfterCut(t *testing.T) {
	g := newRig(t)
	e, _ := g.worker("w1", 1)
	g.Cut(e)
	addr, accept := testkit.ListenWorker(t)
	g.Up(e, "tcp", addr)
	caller := g.caller()
	caller.WriteHeaders(1, end, request(hello)...)
	worker := accept()
	worker.Greet()
	worker.Skip(testkit.WindowUpdate)
	worker.WantHeaders(1, end)
	reply(worker, 1)
	wantReply(caller, 1)
}

// Activity tells since when the oldest call runs, and counts calls that have
// ended; a call that was refused is not one of them (R1).
func TestServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		e, worker := g.pipeWorker("w1", 2)
		caller := g.pipeCaller()
		caller.AnyOrder()
		pass(time.Second)
		began := time.Now()
		caller.WriteHeaders(1, end, request(hello)...)
		worker.WantHeaders(1, end)
		pass(time.Second)
		caller.WriteHeaders(3, end, request(hello)...)
		worker.WantHeaders(3, end)
		a := g.Activity(e)
		if d := a.Oldest.Sub(began); a.Served != 0 || d < 0 || d > 10*time.Millisecond {
			t.Errorf("served %d, the oldest began %v late", a.Served, d)
		}
		worker.WriteRST(3, http2.ErrCodeRefusedStream)
		worker.WantHeaders(5, end)
		reply(worker, 5)
		wantReply(caller, 3)
		caller.WriteRST(1, http2.ErrCodeCancel)
		worker.WantRST(1, http2.ErrCodeCancel)
		if a := g.Activity(e); a.Served != 2 || !a.Oldest.IsZero() {
			t.Errorf("served %d, want 2; oldest %v", a.Served, a.Oldest)
		}
	})
}

// R3: a call of which too much has been written to be sent again ends at a cut also
// where the worker has not seen any of it. It does not count for that one.
func TestCutOfWhatWasNeverSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t, func(o *Options) { o.ReplayBytes = 100 })
		e, worker := g.pipeWorker("w1", 4)
		caller := g.pipeCaller()
		caller.AnyOrder()
		worker.StopReading()
		for _, stream := range []uint32{1, 3} { // one is being written, one stays in our buffer
			caller.WriteHeaders(stream, noEnd, request(hello)...)
			caller.WriteData(stream, end, make([]byte, 200))
			synctest.Wait()
		}
		g.Cut(e)
		wantStatus(caller, 1, "14", draining)
		wantStatus(caller, 3, "14", draining)
		if a := g.Activity(e); a.Served != 1 || a.Cuts != 2 {
			t.Errorf("served %d, cut %d; want 1, 2", a.Served, a.Cuts)
		}
	})
}

// R7: a reflection call, which has no slot, goes to another worker if it has no
// answer yet, and is told the reason if it has.
func TestCutReflection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		e, worker := g.pipeWorker("w1", 1)
		caller := g.pipeCaller()
		caller.AnyOrder()
		for stream := uint32(1); stream <= 3; stream += 2 {
			caller.WriteHeaders(stream, noEnd, request(reflectPath)...)
			caller.WriteData(stream, noEnd, hi())
			worker.WantHeaders(stream, noEnd)
			worker.WantDataBytes(stream, hi(), noEnd)
		}
		worker.WriteHeaders(3, noEnd, responseHead()...)
		caller.WantFields(3, noEnd, responseHead()...)
		_, other := g.pipeWorker("w2", 1)
		worker.Skip(testkit.RST)
		g.Cut(e)
		caller.WantFields(3, end, "grpc-status", "14", "grpc-message", draining)
		caller.WantRST(3, http2.ErrCodeNo)
		other.WantHeaders(1, noEnd)
		other.WantDataBytes(1, hi(), noEnd)
		caller.WriteData(1, end, hi())
		other.WantDataBytes(1, hi(), end)
		reply(other, 1)
		wantReply(caller, 1)
		if n := g.asides.Load(); n != 0 {
			t.Errorf("%d places aside are taken", n)
		}
	})
}

// R7, R17: a reflection call that a cut or a drain ends behind a message, or because that
// does not come to its end, is told why, and not that it was silent.
func TestCutReflectionIsToldWhy(t *testing.T) {
	for name, rest := range map[string][]byte{"whole message": hi()[3:], "no end": nil} {
		for why, end := range map[string]func(g *rig, e *Endpoint){
			draining:                 func(g *rig, e *Endpoint) { g.Cut(e) },
			"cabrank: shutting down": func(g *rig, _ *Endpoint) { go g.Drain(0, nil) }, // ends with the last call
		} {
			t.Run(why+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					g := newPipeRig(t)
					e, worker := g.pipeWorker("w1", 1)
					caller := g.pipeCaller()
					caller.WriteHeaders(1, noEnd, request(reflectPath)...)
					caller.WriteData(1, noEnd, hi())
					worker.WantHeaders(1, noEnd)
					worker.WantDataBytes(1, hi(), noEnd)
					worker.WriteHeaders(1, noEnd, responseHead()...)
					worker.WriteData(1, noEnd, hi()[:3])
					caller.WantFields(1, noEnd, responseHead()...)
					caller.WantDataBytes(1, hi()[:3], noEnd)
					caller.AnyOrder()
					caller.Skip(testkit.Ping, testkit.GoAway)
					end(g, e)
					synctest.Wait()
					if rest != nil {
						worker.WriteData(1, noEnd, rest)
						caller.WantDataBytes(1, rest, noEnd)
					}
					pass(2 * time.Second)
					caller.WantFields(1, testkit.End, "grpc-status", "14", "grpc-message", why)
				})
			})
		}
	}
}
