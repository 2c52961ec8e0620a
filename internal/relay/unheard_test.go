package relay

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/testkit"
)

// finishing has workers end the calls of callers that have gone (R5).
func finishing(o *Options) { o.OnCancel = rank.Finish }

// R5: with finish nobody tells the worker that its caller has gone. It has its slot
// until it has answered, to nobody; what it says is read to the end.
func TestWorkerFinishes(t *testing.T) {
	for name, row := range map[string]struct {
		timeout string
		leave   func(caller *testkit.Peer)
	}{
		"RST_STREAM":      {"1H", func(caller *testkit.Peer) { caller.WriteRST(1, http2.ErrCodeCancel) }},
		"connection lost": {"1H", (*testkit.Peer).Close},
		"deadline": {"1S", func(caller *testkit.Peer) {
			pass(time.Second)
			wantStatus(caller, 1, "4", "cabrank: deadline exceeded")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newPipeRig(t, finishing)
				_, worker := g.pipeWorker("w1", 1)
				caller, next := g.pipeCaller(), g.pipeCaller()
				caller.WriteHeaders(1, end, request(hello, "grpc-timeout", row.timeout)...)
				worker.WantHeaders(1, end)
				row.leave(caller)
				next.WriteHeaders(1, end, request(hello)...)
				worker.WantIdle()
				g.wantWaiting(1)
				worker.WriteHeaders(1, noEnd, responseHead()...)
				if sent := pourUpTo(worker, 1, 0, 3<<20); sent != 3<<20 {
					t.Errorf("%d bytes were taken of an answer that nobody waits for", sent)
				}
				if used := g.budget.Used(); used > 64<<10 {
					t.Errorf("%d bytes of it are kept", used)
				}
				g.wantWaiting(1)
				worker.WriteHeaders(1, end, "grpc-status", "0")
				worker.WantHeaders(3, end)
				reply(worker, 3)
				wantReply(next, 1)
				if n := g.counted("finished_unheard"); n != 1 {
					t.Errorf("counted %d times", n)
				}
			})
		})
	}
}

// R5: a worker whose library ends the stream at the deadline has not said that its
// handler is through; before the deadline an end is an end.
func TestEndByTheClockLeavesAGhost(t *testing.T) {
	for name, row := range map[string]struct {
		passed time.Duration
		say    func(worker *testkit.Peer)
		ghosts int
	}{
		"reset at the deadline":  {time.Second, func(w *testkit.Peer) { w.WriteRST(1, http2.ErrCodeCancel) }, 1},
		"status at the deadline": {time.Second, func(w *testkit.Peer) { w.WriteHeaders(1, end, append(responseHead(), "grpc-status", "4")...) }, 1},
		"answer at the deadline": {time.Second, func(w *testkit.Peer) { w.WriteHeaders(1, end, append(responseHead(), "grpc-status", "0")...) }, 0},
		"reset before":           {time.Second / 2, func(w *testkit.Peer) { w.WriteRST(1, http2.ErrCodeCancel) }, 0},
		"status before":          {time.Second / 2, func(w *testkit.Peer) { w.WriteHeaders(1, end, append(responseHead(), "grpc-status", "4")...) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newPipeRig(t, finishing)
				_, worker := g.pipeWorker("w1", 1)
				caller := g.pipeCaller()
				caller.WriteHeaders(1, end, request(hello, "grpc-timeout", "1S")...)
				worker.WantHeaders(1, end)
				pass(row.passed)
				caller.Close()
				synctest.Wait()
				row.say(worker)
				synctest.Wait()
				if got := g.Rank().Endpoints[0].Ghosts; got != row.ghosts {
					t.Errorf("%d ghosts, want %d", got, row.ghosts)
				}
				g.wantInFlight(0)
			})
		})
	}
}

// R1: a worker that refuses a call that nobody waits for has no free thread, and is
// not a slow one.
func TestRefusalUnheard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t, finishing)
		_, worker := g.pipeWorker("w1", 1)
		caller := g.pipeCaller()
		caller.WriteHeaders(1, end, request(hello)...)
		worker.WantHeaders(1, end)
		caller.Close()
		synctest.Wait()
		refuseByReset(worker, 1)
		synctest.Wait()
		if n := g.rank.Decisions()["paused_refusing"]; n != 1 {
			t.Errorf("taken for a refusal %d times, want once", n)
		}
		g.wantInFlight(0)
	})
}

// R5: the worker gets what of the request is here, though its caller has gone.
func TestWorkerGetsTheRestOfTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t, finishing)
		_, worker := g.pipeWorker("w1", 1)
		worker.WriteSettings(noWindow())
		worker.WantSettingsAck()
		caller := g.pipeCaller()
		caller.WriteHeaders(1, noEnd, request(hello)...)
		caller.WriteData(1, end, hi())
		worker.WantHeaders(1, noEnd)
		caller.Close()
		worker.WantIdle()
		worker.WriteWindowUpdate(1, 2)
		worker.WantDataBytes(1, hi()[:2], noEnd)
		worker.WriteWindowUpdate(1, 20)
		worker.WantDataBytes(1, hi()[2:], end)
		reply(worker, 1)
		worker.WantIdle()
		g.wantInFlight(0)
	})
}

// R5: a worker is told at once where it would wait for a request that does not
// come; and not at all of a call that it has not seen, which leaves no ghost.
func TestWorkerIsTold(t *testing.T) {
	for name, how := range map[string]rank.OnCancel{"finish": rank.Finish, "hold": rank.Hold, "free": rank.Free} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newPipeRig(t, func(o *Options) { o.OnCancel = how })
				_, worker := g.pipeWorker("w1", 2)
				caller := g.pipeCaller()
				caller.WriteHeaders(1, noEnd, request(hello)...)
				worker.WantHeaders(1, noEnd)
				caller.WriteRST(1, http2.ErrCodeCancel)
				worker.WantRST(1, http2.ErrCodeCancel)
				g.wantInFlight(0)
				ghosts := 0
				if how == rank.Hold {
					ghosts = 1
				}
				if got := g.Rank().Endpoints[0].Ghosts; got != ghosts {
					t.Errorf("%d ghosts, want %d", got, ghosts)
				}
				worker.StopReading()
				caller.Batch(func() {
					caller.WriteHeaders(3, end, request(hello)...)
					caller.WriteRST(3, http2.ErrCodeCancel)
				})
				synctest.Wait()
				worker.ReadAgain()
				worker.WantIdle()
				if got := g.Rank().Endpoints[0].Ghosts; got != ghosts {
					t.Errorf("%d ghosts, want %d: a call that was never sent has left one", got, ghosts)
				}
				g.wantInFlight(0)
			})
		})
	}
}

// R5, R11: what of the answer waited for its caller when that left is dropped, and
// its credit goes back to the worker, which would stand still without.
func TestWorkerFinishesAnAnswerThatWaits(t *testing.T) {
	for leaving, leave := range map[string]func(caller *testkit.Peer){
		"RST_STREAM":      func(caller *testkit.Peer) { caller.WriteRST(1, http2.ErrCodeCancel) },
		"connection lost": (*testkit.Peer).Close,
		"deadline":        func(*testkit.Peer) { pass(time.Second) },
	} {
		for size, prefix := range map[string][]byte{"messages": {0, 0, 0, 0, 0}, "part of a message": {0, 0, 0x80, 0, 0}} {
			for _, absorb := range []int{0, 1 << 20} {
				t.Run(fmt.Sprintf("%s, %s, %d", leaving, size, absorb), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						g := newPipeRig(t, finishing, func(o *Options) { o.AbsorbBytes = absorb })
						_, worker := g.pipeWorker("w1", 1)
						caller := g.pipeCaller()
						caller.WriteSettings(noWindow())
						caller.WantSettingsAck()
						caller.WriteHeaders(1, end, request(hello, "grpc-timeout", "1S")...)
						worker.WantHeaders(1, end)
						worker.WriteHeaders(1, noEnd, responseHead()...)
						worker.WriteData(1, noEnd, prefix)
						sent := pour(worker, 1, int64(len(prefix)))
						leave(caller)
						if all := pourUpTo(worker, 1, sent, 3<<20); all != 3<<20 {
							t.Errorf("the worker stands still after %d bytes; %d were sent when the caller left", all, sent)
						}
						worker.WriteHeaders(1, end, "grpc-status", "0")
						worker.WantIdle()
						g.wantInFlight(0)
						if n := g.counted("finished_unheard"); n != 1 {
							t.Errorf("counted %d times", n)
						}
					})
				})
			}
		}
	}
}

// R5: a worker that does not end such a call within half a minute is told.
func TestUnheardCallsAreCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t, finishing)
		_, worker := g.pipeWorker("w1", 1)
		worker.Refill()
		caller := g.pipeCaller()
		caller.WriteHeaders(1, end, request(hello)...)
		worker.WantHeaders(1, end)
		caller.WriteRST(1, http2.ErrCodeCancel)
		began := time.Now()
		worker.WriteHeaders(1, noEnd, responseHead()...)
		for range 29 { // it is not silent
			worker.WriteData(1, noEnd, hi())
			pass(time.Second)
			worker.WantIdle()
		}
		worker.WantRST(1, http2.ErrCodeCancel)
		wantTook(t, began, unheardFor)
		g.wantInFlight(0)
		if n := g.counted("unheard_cut"); n != 1 {
			t.Errorf("counted %d times", n)
		}
	})
}

// R5: however the worker ends such a call, its slot comes back and nobody else
// notices.
func TestEndsOfUnheardCalls(t *testing.T) {
	for name, finish := range map[string]func(worker *testkit.Peer){
		"one block": func(worker *testkit.Peer) { worker.WriteHeaders(1, end, append(responseHead(), "grpc-status", "0")...) },
		"DATA": func(worker *testkit.Peer) {
			worker.WriteHeaders(1, noEnd, responseHead()...)
			worker.WriteData(1, end, hi())
		},
		"a refusal":  func(worker *testkit.Peer) { refuseWhole(rubyBusy)(worker, 1) },
		"RST_STREAM": func(worker *testkit.Peer) { worker.WriteRST(1, http2.ErrCodeInternal) },
		"headers too large": func(worker *testkit.Peer) {
			worker.WriteHeaders(1, end, append(responseHead(), "x", string(make([]byte, 20<<10)))...)
		},
		"broken stream": func(worker *testkit.Peer) {
			worker.WriteHeaders(1, noEnd, "x", "y")
			worker.WantRST(1, http2.ErrCodeProtocol)
		},
		"broken connection": func(worker *testkit.Peer) {
			worker.WriteRaw([]byte{0, 0, 1, 6, 0, 0, 0, 0, 0, 0})
			worker.WantGoAway(http2.ErrCodeFrameSize)
		},
		"GOAWAY":             func(worker *testkit.Peer) { worker.WriteGoAway(0, http2.ErrCodeNo, "") },
		"connection is lost": (*testkit.Peer).Close,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newPipeRig(t, finishing)
				_, worker := g.pipeWorker("w1", 1)
				caller := g.pipeCaller()
				caller.WriteHeaders(1, end, request(hello)...)
				worker.WantHeaders(1, end)
				caller.WriteRST(1, http2.ErrCodeCancel)
				worker.WantIdle()
				finish(worker)
				synctest.Wait()
				g.wantInFlight(0)
				if n := g.running(); n != 0 {
					t.Errorf("%d calls are left", n)
				}
				if code := g.Stats().of(t, otherMethod).Codes; code["CANCELLED"] != 1 || len(code) != 1 {
					t.Errorf("recorded as %v", code)
				}
			})
		})
	}
}

// R5: a worker is judged by what it has answered to nobody, and not by what its caller
// was told meanwhile.
func TestUnheardAnswersAreJudged(t *testing.T) {
	page, status := plain("GET", "/page"), func(w *testkit.Peer, s uint32, kv ...string) { w.WriteHeaders(s, end, kv...) }
	for name, row := range map[string]struct {
		list   []string
		answer func(worker *testkit.Peer, stream uint32)
		faulty bool
	}{
		"HTTP, good":    {page, func(w *testkit.Peer, s uint32) { status(w, s, ":status", "200") }, false},
		"HTTP, body":    {page, func(w *testkit.Peer, s uint32) { w.WriteHeaders(s, noEnd, ":status", "200"); w.WriteData(s, end, hi()) }, false},
		"HTTP, a fault": {page, func(w *testkit.Peer, s uint32) { status(w, s, ":status", "500") }, true},
		"gRPC, good":    {request(hello), reply, false},
		"gRPC, a fault": {request(hello), func(w *testkit.Peer, s uint32) { status(w, s, append(responseHead(), "grpc-status", "13")...) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newPipeRig(t, finishing, func(o *Options) { o.CallTimeout = time.Second })
				_, worker := g.pipeWorker("w1", 1)
				caller := g.pipeCaller()
				caller.Skip(testkit.Headers, testkit.Data)
				for stream := uint32(1); stream < 80; stream += 2 {
					caller.WriteHeaders(stream, end, row.list...)
					worker.WantHeaders(stream, end)
					pass(time.Second)
					row.answer(worker, stream)
					g.wantInFlight(0)
				}
				if pace := g.Rank().Endpoints[0].Pace; (pace > 1) != row.faulty {
					t.Errorf("the worker counts as %v times slower than usual", pace)
				}
			})
		})
	}
}

// R5: a method's own word goes before that for all.
func TestOnCancelOfAMethod(t *testing.T) {
	for name, row := range map[string]struct {
		all, own rank.OnCancel
		told     bool
		ghosts   int
	}{
		"finish where others are freed": {rank.Free, rank.Finish, false, 0},
		"free where others finish":      {rank.Finish, rank.Free, true, 0},
		"hold where others finish":      {rank.Finish, rank.Hold, true, 1},
		"free where others are held":    {rank.Hold, rank.Free, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newPipeRig(t, func(o *Options) {
					o.OnCancel, o.Methods = row.all, []MethodRule{{Pattern: "/test.Greeter/*", OnCancel: row.own}}
				})
				_, worker := g.pipeWorker("w1", 1)
				caller := g.pipeCaller()
				caller.WriteHeaders(1, end, request(hello)...)
				worker.WantHeaders(1, end)
				caller.WriteRST(1, http2.ErrCodeCancel)
				if row.told {
					worker.WantRST(1, http2.ErrCodeCancel)
				} else {
					worker.WantIdle()
					reply(worker, 1)
				}
				g.wantInFlight(0)
				if got := g.Rank().Endpoints[0].Ghosts; got != row.ghosts {
					t.Errorf("%d ghosts, want %d", got, row.ghosts)
				}
			})
		})
	}
}

// R17: a drain waits for workers that go on for nobody, like for all that runs, and
// no longer.
func TestDrainWaitsForUnheardCalls(t *testing.T) {
	for name, row := range map[string]struct{ answers, takes time.Duration }{
		"it ends":     {3 * time.Second, 3 * time.Second},
		"it does not": {time.Hour, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newPipeRig(t, finishing)
				_, worker := g.pipeWorker("w1", 1)
				caller := g.pipeCaller()
				caller.WriteHeaders(1, end, request(hello)...)
				worker.WantHeaders(1, end)
				caller.WriteRST(1, http2.ErrCodeCancel)
				worker.WantIdle()
				caller.Close()
				began := time.Now()
				drained := make(chan struct{})
				go func() { // ends with the drain
					defer close(drained)
					g.Drain(10*time.Second, nil)
				}()
				if row.answers < time.Minute {
					pass(row.answers)
					reply(worker, 1)
				}
				<-drained
				if took := time.Since(began); took < row.takes || took > row.takes+2*time.Second {
					t.Errorf("the drain took %v, want %v", took, row.takes)
				}
			})
		})
	}
}
