package relay

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/testkit"
)

// The ways in which a worker says that it has no free thread.
func refuseWhole(text string) func(*testkit.Peer, uint32) {
	return func(w *testkit.Peer, stream uint32) {
		w.WriteHeaders(stream, end, append(responseHead(), "grpc-status", "8", "grpc-message", text)...)
	}
}

func refuseInTwo(text string) func(*testkit.Peer, uint32) {
	return func(w *testkit.Peer, stream uint32) {
		w.Batch(func() {
			w.WriteHeaders(stream, noEnd, responseHead()...)
			w.WriteHeaders(stream, end, "grpc-status", "8", "grpc-message", text)
		})
	}
}

func refuseByReset(w *testkit.Peer, stream uint32) { w.WriteRST(stream, http2.ErrCodeRefusedStream) }

// mayRepeat is the rule of calls that may run twice: what answers them is held as long as
// it may be the first half of a failure (R2).
func mayRepeat() func(*Options) { return withRule(MethodRule{Idempotent: true, Retries: 1}) }

// R1, R4: a call that a worker refuses moves to another endpoint as it came,
// and its caller sees only the answer.
func TestRefusedCallMoves(t *testing.T) {
	for name, refuse := range map[string]func(*testkit.Peer, uint32){
		"REFUSED_STREAM":          refuseByReset,
		"HEADERS, REFUSED_STREAM": func(w *testkit.Peer, s uint32) { w.WriteHeaders(s, noEnd, responseHead()...); refuseByReset(w, s) },
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, mayRepeat())
			_, first := g.worker("w1", 1)
			caller := g.caller()
			caller.Batch(func() {
				caller.WriteHeaders(1, noEnd, request(hello)...)
				caller.WriteData(1, end, hi())
			})
			w1 := first()
			w1.WantFields(1, noEnd, forwarded(request(hello))...)
			w1.WantDataBytes(1, hi(), end)
			_, second := g.worker("w2", 1)
			refuse(w1, 1)
			w2 := second()
			w2.WantFields(1, noEnd, forwarded(request(hello))...)
			w2.WantDataBytes(1, hi(), end)
			reply(w2, 1)
			wantReply(caller, 1)
			w1.WantIdle()
			if n := g.counted("refused_by_worker"); n != 1 {
				t.Errorf("refused_by_worker: got %d", n)
			}
		})
	}
}

// R1: the words of a worker without a free thread may be those of a handler that
// has run: they are passed on, and the call is not made again. Nothing is held for
// it meanwhile, and one line in the log says that the pool is too small.
func TestTextsMoveNoCall(t *testing.T) {
	for name, answer := range map[string]func(*testkit.Peer, uint32){
		"trailers-only":        refuseWhole(pythonBusy),
		"percent-encoded":      refuseWhole("Concurrent%20RPC limit exceeded!"),
		"two blocks, one read": refuseInTwo(rubyBusy),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var lines bytes.Buffer
				g := newPipeRig(t, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&lines, nil)) })
				_, w1 := g.pipeWorker("w1", 1)
				caller := g.pipeCaller()
				for _, stream := range []uint32{1, 3} { // the second one of a worker that is known to say so
					caller.WriteHeaders(stream, end, request(hello)...)
					w1.WantHeaders(stream, end)
					_, w2 := g.pipeWorker("w2", 1)
					began := time.Now()
					answer(w1, stream)
					switch name {
					case "trailers-only":
						wantStatus(caller, stream, "8", pythonBusy)
					case "percent-encoded":
						wantStatus(caller, stream, "8", "Concurrent%20RPC limit exceeded!")
					default:
						caller.WantFields(stream, noEnd, responseHead()...)
						caller.WantFields(stream, end, "grpc-status", "8", "grpc-message", rubyBusy)
					}
					wantTook(t, began, 0)
					w1.WantIdle()
					w2.WantIdle()
					w2.Close()
					pass(time.Second)
				}
				if moved, passed := g.counted("refused_by_worker"), g.counted("refusal_passed_on"); moved != 0 || passed != 2 {
					t.Errorf("%d were taken for refusals, %d passed on; want 0 and 2", moved, passed)
				}
				synctest.Wait()
				if got := lines.String(); strings.Count(got, "says that it has no free thread") != 1 || !strings.Contains(got, "level=WARN") || !strings.Contains(got, "worker=w1 slots=1") {
					t.Errorf("logged %q, want one warning that names the worker and its slots", got)
				}
			})
		})
	}
}

// R1: an answer by which the call is sent again, as its rule says, is not passed on, and
// nobody is warned of it.
func TestTextThatIsRetriedIsNotPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines bytes.Buffer
		rule := withRule(MethodRule{Idempotent: true, Retries: 1, RetryOn: []grpcwire.Code{grpcwire.ResourceExhausted}})
		g := newPipeRig(t, rule, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&lines, nil)) })
		_, worker := g.pipeWorker("w1", 1)
		caller := g.pipeCaller()
		caller.WriteHeaders(1, end, request(hello)...)
		worker.WantHeaders(1, end)
		refuseWhole(rubyBusy)(worker, 1)
		worker.WantHeaders(3, end)
		reply(worker, 3)
		wantReply(caller, 1)
		synctest.Wait()
		if n := g.counted("refusal_passed_on"); n != 0 || strings.Contains(lines.String(), "no free thread") {
			t.Errorf("%d were passed on, logged %q", n, lines.String())
		}
	})
}

// R1: another endpoint is preferred, even if the one that refused has more free
// slots.
func TestRefusedCallPrefersAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		_, w1 := g.pipeWorker("w1", 9)
		caller := g.pipeCaller()
		caller.WriteHeaders(1, end, request(hello)...)
		w1.WantHeaders(1, end)
		_, w2 := g.pipeWorker("w2", 2)
		caller.WriteHeaders(3, end, request(hello)...)
		w2.WantHeaders(1, end)
		refuseByReset(w1, 1)
		w2.WantHeaders(3, end)
		reply(w2, 3)
		wantReply(caller, 1)
		w1.WantIdle()
	})
}

// R1: the only endpoint there is gets its refused call again, after a pause, at
// most 8 times. REFUSED_STREAM is not passed on then: it would have the caller send the
// call once more.
func TestRefusedStreamNineTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		_, worker := g.pipeWorker("w1", 1)
		caller := g.pipeCaller()
		caller.WriteHeaders(1, end, request(hello)...)
		began := time.Now()
		for try := range uint32(9) {
			worker.WantHeaders(1+2*try, end)
			refuseByReset(worker, 1+2*try)
		}
		wantStatus(caller, 1, "8", "cabrank: no free slot in time")
		// The pauses are 1, 2, 4 ... 128 ms.
		if took := time.Since(began); took < 255*time.Millisecond || took > time.Second {
			t.Errorf("nine tries took %v", took)
		}
	})
}

// R1: whatever may be the application's own answer passes, and the call runs
// exactly once.
func TestOwnAnswersPass(t *testing.T) {
	busy := []string{":status", "200", "content-type", "application/grpc", "grpc-status", "8", "grpc-message", rubyBusy}
	other := []string{":status", "200", "content-type", "application/grpc", "grpc-status", "8", "grpc-message", "quota spent"}
	unavailable := []string{":status", "200", "content-type", "application/grpc", "grpc-status", "14", "grpc-message", rubyBusy}
	silent := []string{":status", "200", "content-type", "application/grpc", "grpc-status", "8"}
	for _, c := range []struct {
		name  string
		local bool
		list  []string
	}{
		{"another text", true, other},
		{"a longer text", true, append(busy[:7:7], rubyBusy+"!")},
		{"no text", true, silent},
		{"another code", true, unavailable},
		{"with pushback", true, append(busy[:8:8], "grpc-retry-pushback-ms", "10")},
		{"from elsewhere", false, busy},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t)
			_, accept := g.endpoint("w1", 1, c.local)
			caller := g.caller()
			caller.WriteHeaders(1, end, request(hello)...)
			worker := accept()
			worker.WantHeaders(1, end)
			worker.WriteHeaders(1, end, c.list...)
			caller.WantFields(1, end, c.list...)
			worker.WantIdle()
			g.wantInFlight(0)
			if n := g.counted("refusal_passed_on"); n != 0 {
				t.Errorf("counted as a refusal %d times", n)
			}
		})
	}
}

// R1: the text in answer to a request that is not gRPC is not a refusal.
func TestPlainAnswerIsNoRefusal(t *testing.T) {
	g := newRig(t)
	_, accept := g.worker("w1", 1)
	caller := g.caller()
	caller.WriteHeaders(1, end, plain("GET", "/page")...)
	worker := accept()
	worker.WantHeaders(1, end)
	refuseWhole(rubyBusy)(worker, 1)
	caller.WantFields(1, end, append(responseHead(), "grpc-status", "8", "grpc-message", rubyBusy)...)
	if n := g.counted("refusal_passed_on"); n != 0 {
		t.Errorf("counted as a refusal %d times", n)
	}
}

// R3: a refusal after the call was committed reaches the caller as UNAVAILABLE:
// REFUSED_STREAM would have it send the call again.
func TestRefusalAfterCommit(t *testing.T) {
	g := newRig(t)
	_, accept := g.worker("w1", 2)
	caller := g.caller()
	caller.WriteHeaders(1, noEnd, request(hello)...)
	worker := accept()
	worker.WantHeaders(1, noEnd)
	worker.WriteHeaders(1, noEnd, responseHead()...)
	caller.WantFields(1, noEnd, responseHead()...)
	worker.WriteRST(1, http2.ErrCodeRefusedStream)
	caller.WantFields(1, end, "grpc-status", "14", "grpc-message", "cabrank: worker refused the call late")
	caller.WantRST(1, http2.ErrCodeNo)
	if n := g.rank.Decisions()["paused_refusing"]; n != 1 {
		t.Errorf("%d of one refusal taught that no thread is free", n)
	}
	if n := g.counted("refused_late"); n != 1 {
		t.Errorf("refused_late: got %d", n)
	}
}

// R2: response HEADERS that may be half of a failure wait for the next frame of
// their stream, but not for long; less long if they carry metadata.
func TestHeadersAreHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t, mayRepeat())
		_, worker := g.pipeWorker("w1", 2)
		caller := g.pipeCaller()
		open := func(stream uint32, head ...string) {
			caller.WriteHeaders(stream, end, request(hello)...)
			worker.WantHeaders(stream, end)
			worker.WriteHeaders(stream, noEnd, head...)
		}
		telling := append(responseHead(), "grpc-encoding", "gzip", "grpc-accept-encoding", "gzip", "x-of-the-application", "1")
		held := func(stream uint32, want time.Duration, head ...string) {
			open(stream, head...)
			caller.WantIdle()
			began := time.Now()
			caller.WantFields(stream, noEnd, head...)
			if took := time.Since(began); took < want || took > 2*want {
				t.Errorf("held for %v, want %v", took, want)
			}
			worker.WriteHeaders(stream, end, "grpc-status", "0")
			caller.WantFields(stream, end, "grpc-status", "0")
		}
		held(1, holdBriefly, responseHead()...) // none was seen yet to fail in two blocks
		open(3, responseHead()...)
		worker.WriteHeaders(3, end, "grpc-status", "5")
		caller.WantFields(3, noEnd, responseHead()...)
		caller.WantFields(3, end, "grpc-status", "5")
		held(5, holdFor, responseHead()...)
		held(7, holdBriefly, telling...)

		open(9, responseHead()...)
		caller.WantIdle()
		began := time.Now()
		worker.WriteData(9, noEnd, hi())
		caller.WantFields(9, noEnd, responseHead()...)
		caller.WantDataBytes(9, hi(), noEnd)
		if took := time.Since(began); took != 0 {
			t.Errorf("DATA did not release the HEADERS at once but after %v", took)
		}
		worker.WriteHeaders(9, end, "grpc-status", "0")
		caller.WantFields(9, end, "grpc-status", "0")

		// In two reads, within the time.
		open(11, responseHead()...)
		synctest.Wait()
		worker.WriteHeaders(11, end, "grpc-status", "14", "grpc-message", "just now")
		worker.WantHeaders(13, end)
		reply(worker, 13)
		wantReply(caller, 11)
	})
}

// R2: one worker's failure in two blocks tells of all that cabrank starts, also of those
// that come later; one at an address elsewhere tells of none.
func TestOneFailsInTwoAsAllDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t, mayRepeat())
		caller := g.pipeCaller()
		stream := uint32(1)
		fail := func(worker *testkit.Peer) {
			caller.WriteHeaders(stream, end, request(hello)...)
			worker.WantHeaders(1, end)
			worker.WriteHeaders(1, noEnd, responseHead()...)
			worker.WriteHeaders(1, end, "grpc-status", "5")
			caller.WantFields(stream, noEnd, responseHead()...)
			caller.WantFields(stream, end, "grpc-status", "5")
			stream += 2
		}
		e, worker := g.pipeWorker("elsewhere", 1)
		e.local = false
		fail(worker)
		g.RemoveEndpoint(e)
		if g.failInTwo.Load() {
			t.Error("a server elsewhere told of the workers")
		}
		e, worker = g.pipeWorker("w1", 1)
		fail(worker)
		g.RemoveEndpoint(e)

		_, worker = g.pipeWorker("w2", 1)
		caller.WriteHeaders(stream, end, request(hello)...)
		worker.WantHeaders(1, end)
		began := time.Now()
		worker.WriteHeaders(1, noEnd, responseHead()...)
		caller.WantFields(stream, noEnd, responseHead()...)
		if took := time.Since(began); took < holdFor {
			t.Errorf("held for %v, want %v", took, holdFor)
		}
		reply(worker, 1)
	})
}

// R2: nothing is held for a caller that has not finished (it may wait for the
// HEADERS before it goes on), nor for endpoints that someone else runs.
func TestHeadersAreNotHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		e, worker := g.pipeWorker("w1", 2)
		caller := g.pipeCaller()
		caller.WriteHeaders(1, noEnd, request(hello)...)
		worker.WantHeaders(1, noEnd)
		began := time.Now()
		worker.WriteHeaders(1, noEnd, responseHead()...)
		caller.WantFields(1, noEnd, responseHead()...)
		e.local = false
		caller.WriteHeaders(3, end, request(hello)...)
		worker.WantHeaders(3, end)
		worker.WriteHeaders(3, noEnd, responseHead()...)
		caller.WantFields(3, noEnd, responseHead()...)
		if took := time.Since(began); took != 0 {
			t.Errorf("held for %v", took)
		}
	})
}

// R2: what ends a call while its HEADERS are held ends it once.
func TestEndsWhileHeld(t *testing.T) {
	for name, script := range map[string]func(g *rig, caller, worker *testkit.Peer){
		"worker lost": func(_ *rig, caller, worker *testkit.Peer) {
			worker.Close()
			wantStatus(caller, 1, "14", "cabrank: worker lost")
		},
		"reset by the worker": func(_ *rig, caller, worker *testkit.Peer) {
			worker.WriteRST(1, http2.ErrCodeInternal)
			caller.WantRST(1, http2.ErrCodeInternal)
		},
		"cancelled": func(_ *rig, caller, worker *testkit.Peer) {
			caller.WriteRST(1, http2.ErrCodeCancel)
			worker.WantRST(1, http2.ErrCodeCancel)
		},
		"caller gone": func(_ *rig, caller, worker *testkit.Peer) {
			caller.Close()
			worker.WantRST(1, http2.ErrCodeCancel)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newPipeRig(t, withRule(MethodRule{Idempotent: true}))
				_, worker := g.pipeWorker("w1", 2)
				caller := g.pipeCaller()
				caller.WriteHeaders(1, end, request(hello)...)
				worker.WantHeaders(1, end)
				worker.WriteHeaders(1, noEnd, responseHead()...)
				caller.WantIdle()
				script(g, caller, worker)
			})
		})
	}
}
