package relay

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/testkit"
)

// late is after what time the calls of these tests get a hedge.
const late = 100 * time.Millisecond

func hedged() MethodRule { return MethodRule{Idempotent: true, HedgeAfter: late} }

// race is a call that w1 has, and as soon as that is late w2, too.
type race struct {
	*rig
	t              *testing.T
	caller, w1, w2 *testkit.Peer
}

// newRace begins a call of one message on w1; w2 has a slot to spare.
func newRace(t *testing.T, change ...func(*Options)) *race {
	t.Helper()
	r := &race{rig: newPipeRig(t, append([]func(*Options){withRule(hedged())}, change...)...), t: t}
	_, r.w1 = r.pipeWorker("w1", 1)
	r.caller = r.pipeCaller()
	r.caller.Batch(func() {
		r.caller.WriteHeaders(1, noEnd, request(hello, "grpc-timeout", "9S")...)
		r.caller.WriteData(1, end, hi())
	})
	r.w1.WantHeaders(1, noEnd)
	r.w1.WantDataBytes(1, hi(), end)
	_, r.w2 = r.pipeWorker("w2", 1)
	r.failInTwo.Store(true)
	return r
}

// hedge waits until w2 has the call, too.
func (r *race) hedge() {
	r.t.Helper()
	began := time.Now()
	fields := r.w2.WantHeaders(1, noEnd)
	r.w2.WantDataBytes(1, hi(), end)
	wantTook(r.t, began, late)
	if n := testkit.Value(fields, triesName); n != "1" {
		r.t.Errorf("%s: %q", triesName, n)
	}
	if left := testkit.Value(fields, "grpc-timeout"); left > "8900000u" || left < "8890000u" {
		r.t.Errorf("grpc-timeout: %s", left)
	}
	r.wantInFlight(2)
}

// wantHedges compares the counters, "lost 1, sent 1" and so on.
func (r *race) wantHedges(want map[string]uint64) {
	r.t.Helper()
	synctest.Wait()
	for result, n := range r.Stats().Hedges {
		if n != want[result] {
			r.t.Errorf("hedges %s: %d, want %d", result, n, want[result])
		}
	}
}

// A6: a call that is late gets a second attempt, and the first answer wins. The
// other attempt is cancelled, its slot is free again, and it is one call.
func TestHedge(t *testing.T) {
	for name, first := range map[string]bool{"the first attempt wins": true, "the hedge wins": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRace(t)
				r.hedge()
				winner, loser, result := r.w2, r.w1, "won"
				if first {
					winner, loser, result = r.w1, r.w2, "lost"
				}
				reply(winner, 1)
				wantReply(r.caller, 1)
				loser.WantRST(1, http2.ErrCodeCancel)
				r.wantInFlight(0)
				r.wantHedges(map[string]uint64{"sent": 1, result: 1})
				if codes := r.Stats().of(t, hello).Codes; len(codes) != 1 || codes["OK"] != 1 {
					t.Errorf("counted as %v, want one OK", codes)
				}
				winner.WantIdle()
			})
		})
	}
}

// A race in which both attempts have still to send outlives a reload by which such a
// request would not be kept: each worker gets all of it.
func TestReloadInRace(t *testing.T) {
	for name, first := range map[string]bool{"the first attempt wins": true, "the hedge wins": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newPipeRig(t, withRule(hedged()))
				worker := func(name string) *testkit.Peer {
					_, w := g.pipeWorker(name, 1)
					w.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 4})
					w.WantSettingsAck()
					return w
				}
				w1, caller := worker("w1"), g.pipeCaller()
				caller.WriteHeaders(1, noEnd, request(hello)...)
				caller.WriteData(1, end, []byte("a request"))
				w1.WantHeaders(1, noEnd)
				w1.WantDataBytes(1, []byte("a re"), noEnd)
				w2 := worker("w2")
				w2.WantHeaders(1, noEnd)
				w2.WantDataBytes(1, []byte("a re"), noEnd)
				g.reload(withRule(hedged()), func(o *Options) { o.ReplayBytes = 1 })
				winner, loser := w2, w1
				if first {
					winner, loser = w1, w2
				}
				loser.WriteWindowUpdate(1, 5)
				loser.WantDataBytes(1, []byte("quest"), end)
				winner.WriteWindowUpdate(1, 5)
				winner.WantDataBytes(1, []byte("quest"), end)
				reply(winner, 1)
				wantReply(caller, 1)
				loser.WantRST(1, http2.ErrCodeCancel)
			})
		})
	}
}

// There is no hedge where it would not be the same call, or take a slot that
// somebody else could have.
func TestNoHedge(t *testing.T) {
	plan := withRule(hedged())
	for name, c := range map[string]struct {
		change func(*Options)
		act    func(r *race)
		result string
	}{
		"answered in time":  {plan, func(r *race) { reply(r.w1, 1); wantReply(r.caller, 1) }, ""},
		"HEADERS have come": {plan, func(r *race) { r.w1.WriteHeaders(1, noEnd, responseHead()...) }, ""},
		"not idempotent":    {func(o *Options) { plan(o); o.Methods[0].Idempotent = false }, func(*race) {}, ""},
		"its deadline has passed": {func(o *Options) { plan(o); o.CallTimeout = late }, func(r *race) {
			r.w1.WantRST(1, http2.ErrCodeCancel)
			wantStatus(r.caller, 1, "4", "cabrank: deadline exceeded")
		}, ""},
		"too large to keep": {func(o *Options) { plan(o); o.ReplayBytes = 5 }, func(*race) {}, ""},
		"none may be kept":  {func(o *Options) { plan(o); o.ReplayTotal = 5 }, func(*race) {}, ""},
		"no free slot": {plan, func(r *race) {
			r.caller.WriteHeaders(3, end, request(hello+"s")...)
			r.w2.WantHeaders(1, end)
		}, "no_slot"},
		"no ready endpoint": {plan, func(r *race) { r.rank.SetReady(r.stands[0].upstreams[1].endpoint.slots, false, r.now(), nil) }, "no_slot"},
		"headers that it does not take": {plan, func(r *race) {
			r.w2.WriteSettings(http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: 10})
			r.w2.WantSettingsAck()
		}, "no_slot"},
		"no cancels": {func(o *Options) { plan(o); o.Methods[0].OnCancel = rank.Finish }, func(*race) {}, ""},
		"no budget":  {func(o *Options) { plan(o); o.RetryBudget = RetryBudget{} }, func(*race) {}, "no_budget"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRace(t, c.change)
				c.act(r)
				pass(2 * late)
				r.w2.WantIdle()
				want := map[string]uint64{}
				if c.result != "" {
					want[c.result] = 1
				}
				r.wantHedges(want)
				r.caller.Skip(testkit.Headers, testkit.Data, testkit.RST)
			})
		})
	}
}

// A caller that is still sending gets no hedge, nor does one whose answer is
// under way.
func TestNoHedgeOfUnfinishedRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t, withRule(hedged()))
		_, w1 := g.pipeWorker("w1", 1)
		caller := g.pipeCaller()
		caller.WriteHeaders(1, noEnd, request(hello)...)
		caller.WriteData(1, noEnd, hi())
		w1.WantHeaders(1, noEnd)
		w1.WantDataBytes(1, hi(), noEnd)
		_, w2 := g.pipeWorker("w2", 1)
		pass(2 * late)
		caller.WriteData(1, end, hi())
		w1.WantDataBytes(1, hi(), end)
		pass(2 * late)
		w2.WantIdle()
		reply(w1, 1)
		wantReply(caller, 1)
	})
}

// failures are the ways in which one of two attempts can fail.
func failures() map[string]func(*testkit.Peer, uint32) {
	return map[string]func(*testkit.Peer, uint32){
		"refused":        refuseWhole(rubyBusy),
		"refused in two": refuseInTwo(rubyBusy),
		"REFUSED_STREAM": refuseByReset,
		"reset":          func(w *testkit.Peer, s uint32) { w.WriteRST(s, http2.ErrCodeInternal) },
		"GOAWAY":         func(w *testkit.Peer, _ uint32) { w.WriteGoAway(0, http2.ErrCodeNo, "") },
		"lost":           func(w *testkit.Peer, _ uint32) { w.Close() },
		"UNAVAILABLE":    answerWhole("14"),
		"UNAVAILABLE later": func(w *testkit.Peer, s uint32) {
			w.WriteHeaders(s, noEnd, responseHead()...)
			pass(holdFor / 2)
			w.WriteHeaders(s, end, "grpc-status", "14")
		},
		"a broken rule":     func(w *testkit.Peer, s uint32) { w.WriteData(s, noEnd, hi()); w.WantRST(s, http2.ErrCodeProtocol) },
		"broken connection": func(w *testkit.Peer, _ uint32) { w.WriteHeaders(99, end, responseHead()...) },
		"large headers": func(w *testkit.Peer, s uint32) {
			w.WriteHeaders(s, noEnd, append(responseHead(), "x-large", strings.Repeat("~", 20<<10))...)
		},
	}
}

// An attempt that fails while the other goes on just ends; a refusal is no
// exception (R1). There is no second hedge.
func TestOneOfTwoFails(t *testing.T) {
	for name, fail := range failures() {
		for whose, first := range map[string]bool{", the first": true, ", the hedge": false} {
			t.Run(name+whose, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRace(t)
					r.hedge()
					failing, other, result := r.w2, r.w1, "lost"
					if first {
						failing, other, result = r.w1, r.w2, "won"
					}
					failing.Skip(testkit.RST, testkit.GoAway)
					fail(failing, 1)
					synctest.Wait()
					r.wantInFlight(1)
					r.wantHedges(map[string]uint64{"sent": 1, result: 1})
					r.caller.WantIdle()
					pass(3 * late)
					reply(other, 1)
					wantReply(r.caller, 1)
					r.wantInFlight(0)
				})
			})
		}
	}
}

// A6: an answer that would not be tried again settles the race, good or bad.
func TestFatalAnswerSettlesRace(t *testing.T) {
	for name, answer := range map[string]func(*testkit.Peer, uint32){
		"NOT_FOUND":                  answerWhole("5", "grpc-message", "none"),
		"OK":                         answerWhole("0", "grpc-message", "none"),
		"its own RESOURCE_EXHAUSTED": answerWhole("8", "grpc-message", "none"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRace(t)
				r.hedge()
				answer(r.w2, 1)
				if m := testkit.Value(r.caller.WantHeaders(1, end), "grpc-message"); m != "none" {
					t.Errorf("grpc-message: %q", m)
				}
				r.w1.WantRST(1, http2.ErrCodeCancel)
				r.wantInFlight(0)
			})
		})
	}
}

// R2: response HEADERS that are held settle nothing; whose hold ends first does.
func TestHeldHeadersInRace(t *testing.T) {
	for name, first := range map[string]bool{"the first attempt": true, "the hedge": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRace(t)
				r.hedge()
				winner, loser := r.w2, r.w1
				if first {
					winner, loser = r.w1, r.w2
				}
				loser.WriteHeaders(1, noEnd, append(responseHead(), "x-from", "loser")...) // five fields: held shortly
				winner.WriteHeaders(1, noEnd, responseHead()...)
				r.caller.WantIdle()
				winner.WriteData(1, noEnd, hi())
				r.caller.WantFields(1, noEnd, responseHead()...)
				r.caller.WantDataBytes(1, hi(), noEnd)
				loser.WantRST(1, http2.ErrCodeCancel)
				winner.WriteHeaders(1, end, "grpc-status", "0")
				r.caller.WantFields(1, end, "grpc-status", "0")
			})
		})
	}
	t.Run("time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRace(t)
			r.hedge()
			began := time.Now()
			r.w2.WriteHeaders(1, noEnd, responseHead()...)
			r.caller.WantFields(1, noEnd, responseHead()...)
			wantTook(t, began, holdFor)
			r.w1.WantRST(1, http2.ErrCodeCancel)
			r.w2.WriteHeaders(1, end, "grpc-status", "0")
			r.caller.WantFields(1, end, "grpc-status", "0")
		})
	})
	t.Run("held when the first is lost", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRace(t)
			r.hedge()
			began := time.Now()
			r.w2.WriteHeaders(1, noEnd, responseHead()...)
			pass(holdFor / 2)
			r.w1.Close()
			r.caller.WantFields(1, noEnd, responseHead()...)
			wantTook(t, began, holdFor)
			r.w2.WriteHeaders(1, end, "grpc-status", "0")
			r.caller.WantFields(1, end, "grpc-status", "0")
		})
	})
}

// A call that ends in the middle of the race ends both attempts.
func TestRaceEnds(t *testing.T) {
	for name, stop := range map[string]func(*race){
		"the caller leaves":  func(r *race) { r.caller.WriteRST(1, http2.ErrCodeCancel) },
		"the caller is lost": func(r *race) { r.caller.Close() },
		"the deadline": func(r *race) {
			pass(9*time.Second - late)
			wantStatus(r.caller, 1, "4", "cabrank: deadline exceeded")
		},
		"the relay stops": func(r *race) {
			r.caller.Skip(testkit.GoAway, testkit.Ping)
			done := make(chan struct{})
			go func() { defer close(done); r.Drain(time.Millisecond, nil) }()
			wantStatus(r.caller, 1, "14", "cabrank: shutting down")
			r.caller.Close()
			<-done
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRace(t)
				r.hedge()
				stop(r)
				r.w1.WantRST(1, http2.ErrCodeCancel)
				r.w2.WantRST(1, http2.ErrCodeCancel)
				r.wantInFlight(0)
				r.wantHedges(map[string]uint64{"sent": 1, "lost": 1})
			})
		})
	}
	t.Run("Close", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRace(t)
			r.hedge()
			r.Close()
		})
	})
}

// A hedge that has taken the place of the first attempt is like any attempt: it
// moves when it is refused (R1), and is tried again by the rule.
func TestHedgeMovesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rule := hedged()
		rule.Retries, rule.RetryOn = 1, []grpcwire.Code{grpcwire.Unavailable}
		r := newRace(t, withRule(rule))
		r.hedge()
		r.w1.WriteRST(1, http2.ErrCodeInternal)
		_, w3 := r.pipeWorker("w3", 1)
		refuseByReset(r.w2, 1)
		again := func(w *testkit.Peer, stream uint32, tries string) {
			t.Helper()
			if n := testkit.Value(w.WantHeaders(stream, noEnd), triesName); n != tries {
				t.Errorf("%s: %q, want %s", triesName, n, tries)
			}
			w.WantDataBytes(stream, hi(), end)
		}
		again(w3, 1, "1")
		answerWhole("14")(w3, 1)
		pass(firstBackOff)
		again(r.w1, 3, "2")
		pass(2 * late) // a call has one hedge
		r.w2.WantIdle()
		reply(r.w1, 3)
		wantReply(r.caller, 1)
	})
}

// A hedge whose request is still on its way when it wins takes the rest of it.
func TestHedgeWinsEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t, withRule(hedged()))
		_, w1 := g.pipeWorker("w1", 1)
		caller := g.pipeCaller()
		body := make([]byte, 1000)
		for i := range body {
			body[i] = byte(i)
		}
		caller.WriteHeaders(1, noEnd, request(hello)...)
		caller.WriteData(1, end, body)
		w1.WantHeaders(1, noEnd)
		w1.WantDataBytes(1, body, end)
		e := g.AddEndpoint("w2", 1, true)
		w2 := testkit.NewWorker(t, g.pipe(e))
		w2.Greet(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 100})
		w2.Skip(testkit.WindowUpdate)
		w2.WantHeaders(1, noEnd)
		w2.WantDataBytes(1, body[:100], noEnd)
		w2.WriteHeaders(1, noEnd, responseHead()...)
		caller.WantFields(1, noEnd, responseHead()...)
		w1.WantRST(1, http2.ErrCodeCancel)
		w2.WriteWindowUpdate(1, 300)
		w2.WantDataBytes(1, body[100:400], noEnd)
		w2.WriteWindowUpdate(1, 3000)
		w2.WantDataBytes(1, body[400:], end)
		w2.WriteData(1, noEnd, hi())
		w2.WriteHeaders(1, end, "grpc-status", "0")
		caller.WantDataBytes(1, hi(), noEnd)
		caller.WantFields(1, end, "grpc-status", "0")
	})
}

// R5: the slot of the attempt that has lost is held as a ghost where handlers
// run to their end.
func TestLoserIsGhost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRace(t, func(o *Options) { o.OnCancel = rank.Hold })
		r.hedge()
		reply(r.w2, 1)
		wantReply(r.caller, 1)
		r.w1.WantRST(1, http2.ErrCodeCancel)
		for _, e := range r.Rank().Endpoints {
			if want := map[string]int{"w1": 1}[e.Name]; e.Ghosts != want {
				t.Errorf("%s has %d ghosts, want %d", e.Name, e.Ghosts, want)
			}
		}
		pass(2 * time.Second)
	})
}

// With HedgeAuto a call is late after twice the time in which nearly all of its kind
// end; nobody knows when that is before 20 of them have.
func TestHedgeAuto(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &race{t: t, rig: newPipeRig(t, withRule(MethodRule{Idempotent: true, HedgeAuto: true}))}
		_, r.w1 = r.pipeWorker("w1", 1)
		r.caller = r.pipeCaller()
		stream := uint32(1)
		ask := func() {
			r.caller.WriteHeaders(stream, end, request(hello)...)
			r.w1.WantHeaders(stream, end)
		}
		const usual = 50 * time.Millisecond
		for range hedgeSamples + 1 { // the first has no name yet
			ask()
			pass(usual)
			reply(r.w1, stream)
			wantReply(r.caller, stream)
			stream += 2
		}
		ask()
		_, r.w2 = r.pipeWorker("w2", 1)
		began := time.Now()
		r.w2.WantHeaders(1, end)
		if took := time.Since(began); took < usual*16/10 || took > usual*24/10+2*time.Millisecond {
			t.Errorf("a hedge after %v, want about %v", took, 2*usual)
		}
		reply(r.w2, 1)
		wantReply(r.caller, stream)
		r.w1.WantRST(stream, http2.ErrCodeCancel)
	})
}

// Hedges cost no memory in the steady state either.
func TestHedgesAreReused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRace(t)
		r.hedge()
		reply(r.w2, 1)
		wantReply(r.caller, 1)
		r.w1.WantRST(1, http2.ErrCodeCancel)
		synctest.Wait()
		r.stands[0].do(func() {
			st := r.stands[0]
			if len(st.freeAttempts) != 1 {
				t.Fatalf("%d attempts for reuse", len(st.freeAttempts))
			}
			a := st.freeAttempts[0]
			if a.up.Open() || a.hold.Set() || a.lease.Valid() || a.held != nil || a.via != nil || a.previous != 0 {
				t.Errorf("an attempt for reuse has a past: %+v", a.effort)
			}
			if again := st.newAttempt(nil); again != a {
				t.Error("it is not used again")
			}
			st.recycleAttempt(a)
		})
	})
}
