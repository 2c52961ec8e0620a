package relay

import (
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/testkit"
)

const stallTimeout = time.Minute

// stallRig has one slot, and as much time for those who wait as it takes.
func stallRig(t *testing.T) *rig {
	t.Helper()
	return newPipeRig(t, func(o *Options) {
		o.StallTimeout, o.QueueTimeout, o.AbsorbBytes = stallTimeout, 24*time.Hour, 0
	})
}

// R9: a call whose caller moves no byte is ended while it has a slot and others
// wait, whatever it waits with, and its slot serves the next one.
func TestStalledCallers(t *testing.T) {
	for name, row := range map[string]struct {
		stall func(caller, worker *testkit.Peer)
		sent  bool // HEADERS of the answer
	}{
		"nothing but HEADERS":     {stall: func(_, _ *testkit.Peer) {}},
		"a message and no end":    {stall: func(caller, _ *testkit.Peer) { caller.WriteData(1, noEnd, hi()) }},
		"the beginning of a word": {stall: func(caller, _ *testkit.Peer) { caller.WriteData(1, noEnd, hi()[:3]) }},
		"an answer that it does not take": {sent: true, stall: func(caller, worker *testkit.Peer) {
			caller.WriteData(1, end, hi())
			worker.WriteHeaders(1, noEnd, responseHead()...)
			worker.WriteData(1, noEnd, make([]byte, 1000))
		}},
		"a conversation that has ended its turn": {sent: true, stall: func(caller, worker *testkit.Peer) {
			caller.WriteWindowUpdate(1, 1000)
			caller.WriteData(1, noEnd, hi())
			worker.WriteHeaders(1, noEnd, responseHead()...)
			worker.WriteData(1, noEnd, hi())
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := stallRig(t)
				_, worker := g.pipeWorker("w1", 1)
				worker.Skip(testkit.Data)
				caller, next := g.deafCaller(), g.pipeCaller()
				caller.Skip(testkit.Data)
				caller.WriteHeaders(1, noEnd, request(hello)...)
				worker.WantHeaders(1, noEnd)
				row.stall(caller, worker)
				synctest.Wait()
				next.WriteHeaders(1, end, request(hello)...)
				pass(stallTimeout)
				if n := g.counted("caller_stalled"); n != 0 {
					t.Error("ended before its time")
				}
				pass(stallEvery)
				if row.sent {
					caller.WantFields(1, noEnd, responseHead()...)
					caller.WantFields(1, end, "grpc-status", "10", "grpc-message", "cabrank: caller stalled")
				} else {
					wantStatus(caller, 1, "10", "cabrank: caller stalled")
				}
				worker.WantRST(1, http2.ErrCodeCancel)
				worker.WantHeaders(3, end)
				reply(worker, 3)
				wantReply(next, 1)
				if n := g.counted("caller_stalled"); n != 1 {
					t.Errorf("counted %d times", n)
				}
			})
		})
	}
}

// R9: who does its part is left alone for as long as that takes, though others
// wait: a caller that waits for its worker, one that moves a byte now and then,
// one that takes what there is.
func TestNotStalled(t *testing.T) {
	for name, row := range map[string]struct {
		end  testkit.EndStream
		prep func(caller, worker *testkit.Peer)
		turn func(caller, worker *testkit.Peer)
	}{
		"a worker that is silent": {end: end},
		"a worker that does not read": {
			prep: func(caller, _ *testkit.Peer) { caller.WriteData(1, noEnd, hi()) },
		},
		"a caller that sends a byte a minute": {
			prep: func(_, worker *testkit.Peer) { worker.WriteWindowUpdate(1, 1000) },
			turn: func(caller, _ *testkit.Peer) { caller.WriteData(1, noEnd, []byte{0}) },
		},
		"a caller that takes a byte a minute": {
			prep: func(_, worker *testkit.Peer) {
				worker.WriteHeaders(1, noEnd, responseHead()...)
				worker.WriteData(1, noEnd, make([]byte, 1000))
			},
			turn: func(caller, _ *testkit.Peer) { caller.WriteWindowUpdate(1, 1) },
		},
		"a worker that sends a byte a minute": {
			prep: func(caller, worker *testkit.Peer) {
				caller.WriteWindowUpdate(1, 1000)
				worker.WriteHeaders(1, noEnd, responseHead()...)
			},
			turn: func(_, worker *testkit.Peer) { worker.WriteData(1, noEnd, []byte{0}) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := stallRig(t)
				_, worker := g.pipeWorker("w1", 1)
				worker.Skip(testkit.Data)
				worker.WriteSettings(noWindow())
				worker.WantSettingsAck()
				caller, next := g.deafCaller(), g.pipeCaller()
				caller.Skip(testkit.Data)
				caller.WriteHeaders(1, row.end, request(hello)...)
				worker.WantHeaders(1, row.end)
				if row.prep != nil {
					row.prep(caller, worker)
				}
				synctest.Wait()
				next.WriteHeaders(1, end, request(hello)...)
				for range 60 {
					if row.turn != nil {
						row.turn(caller, worker)
					}
					pass(59 * time.Second)
				}
				if n := g.counted("caller_stalled"); n != 0 || g.Waiting() != 1 {
					t.Errorf("%d calls ended, %d wait", n, g.Waiting())
				}
				caller.Close()
				next.Close()
			})
		})
	}
}

// R9: while nobody waits a call may be as quiet as it likes, and the first who
// has to wait does not end it; when nothing runs nobody looks.
func TestQuietStreamWhileNobodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := stallRig(t)
		_, worker := g.pipeWorker("w1", 1)
		caller, next := g.pipeCaller(), g.pipeCaller()
		caller.WriteHeaders(1, noEnd, request(hello)...)
		worker.WantHeaders(1, noEnd)
		pass(time.Hour)
		next.WriteHeaders(1, end, request(hello)...)
		pass(stallTimeout / 2)
		if n := g.counted("caller_stalled"); n != 0 {
			t.Errorf("%d calls were ended at once", n)
		}
		caller.WriteData(1, end, hi())
		worker.WantDataBytes(1, hi(), end)
		reply(worker, 1)
		wantReply(caller, 1)
		worker.WantHeaders(3, end)
		reply(worker, 3)
		wantReply(next, 1)
		pass(stallTimeout)
		st := g.stands[0]
		st.do(func() {
			if st.stalls.timer.Set() {
				t.Error("the watch runs on without calls")
			}
		})
	})
}

// The largest hole there was: calls without a deadline that send one message and
// stop hold every slot for ever. Now whoever waits is served, behind those who were
// there before.
func TestSlotsHeldForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := stallRig(t)
		_, worker := g.pipeWorker("w1", 4)
		holder, honest := g.pipeCaller(), g.pipeCaller()
		holder.AnyOrder()
		worker.AnyOrder()
		worker.Skip(testkit.Data, testkit.RST)
		for n := range uint32(8) { // four of them wait, too
			holder.WriteHeaders(1+2*n, noEnd, request(hello)...)
			holder.WriteData(1+2*n, noEnd, hi())
		}
		synctest.Wait()
		honest.WriteHeaders(1, end, request(hello)...)
		pass(2 * (stallTimeout + stallEvery))
		worker.WantHeaders(17, end)
		reply(worker, 17)
		wantReply(honest, 1)
		holder.Close()
	})
}

// R9: who has more than his share of the slots loses those that he does nothing with,
// soon, to one who has less and waits: with calls of which nothing but HEADERS has come,
// or half a message, with answers that he does not take. One that moves a byte stays, as
// do those within his share; nobody loses one for his own calls' sake.
func TestSlotsAreReclaimed(t *testing.T) {
	for name, row := range map[string]func(caller, worker *testkit.Peer, id uint32){
		"nothing but HEADERS": func(_, _ *testkit.Peer, _ uint32) {},
		"half a message":      func(caller, _ *testkit.Peer, id uint32) { caller.WriteData(id, noEnd, hi()[:3]) },
		"an answer that is not taken": func(caller, worker *testkit.Peer, id uint32) {
			caller.WriteData(id, end, hi())
			worker.WriteHeaders(id, noEnd, responseHead()...)
			worker.WriteData(id, noEnd, make([]byte, 1000))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newPipeRig(t, func(o *Options) {
					o.StallTimeout, o.QueueTimeout, o.OnCancel, o.AbsorbBytes = stallTimeout, 24*time.Hour, rank.Free, 0
					o.Keys = Keys{By: ByMetadata, Metadata: "x-tenant"}
				})
				_, worker := g.pipeWorker("w1", 4)
				worker.Skip(testkit.Data, testkit.RST)
				idle, other := g.deafCaller(), g.pipeCaller()
				idle.Skip(testkit.Data, testkit.Headers)
				from := func(who string) []string { return request(hello, "x-tenant", who) }
				for id := uint32(1); id <= 7; id += 2 {
					idle.WriteHeaders(id, noEnd, from("idle")...)
					worker.WantHeaders(id, noEnd)
					row(idle, worker, id)
				}
				idle.WriteHeaders(9, noEnd, from("idle")...)
				pass(10 * time.Second)
				if n := g.counted("slot_reclaimed"); n != 0 {
					t.Errorf("%d calls were ended for their own caller's sake", n)
				}
				for id := uint32(1); id <= 5; id += 2 {
					other.WriteHeaders(id, end, from("other")...)
				}
				pass((reclaimLooks-1)*stallEvery - time.Millisecond)
				if n := g.counted("slot_reclaimed"); n != 0 {
					t.Errorf("%d calls were ended too early", n)
				}
				pass(time.Second)
				if n := g.counted("slot_reclaimed"); n != 2 || g.counted("caller_stalled") != 0 {
					t.Errorf("%d calls were ended, want those beyond its share: 2", n)
				}
				idle.Close()
				other.Close()
			})
		})
	}
}

// Calls that their worker finishes, unheard, give their slots back when it is through:
// nobody loses more than are wanted because that is not yet.
func TestReclaimCountsWhatIsFinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t, func(o *Options) {
			o.StallTimeout, o.QueueTimeout, o.OnCancel, o.AbsorbBytes = stallTimeout, 24*time.Hour, rank.Finish, 0
			o.Keys = Keys{By: ByMetadata, Metadata: "x-tenant"}
		})
		_, worker := g.pipeWorker("w1", 4)
		worker.Skip(testkit.Data, testkit.RST)
		idle, other := g.deafCaller(), g.pipeCaller()
		idle.Skip(testkit.Data, testkit.Headers)
		from := func(who string) []string { return request(hello, "x-tenant", who) }
		for id := uint32(1); id <= 7; id += 2 {
			idle.WriteHeaders(id, noEnd, from("idle")...)
			worker.WantHeaders(id, noEnd)
			idle.WriteData(id, end, hi())
			worker.WriteHeaders(id, noEnd, responseHead()...)
			worker.WriteData(id, noEnd, make([]byte, 1000))
		}
		for id := uint32(1); id <= 5; id += 2 {
			other.WriteHeaders(id, end, from("other")...)
		}
		pass(5 * time.Second)
		if n := g.counted("slot_reclaimed"); n != 2 {
			t.Errorf("%d calls were ended, want those beyond its share: 2", n)
		}
		idle.Close()
		other.Close()
	})
}

// A caller in this process who does not read is one who does not take its answer.
func TestSlotsOfLocalCallsAreReclaimed(t *testing.T) {
	for name, reads := range map[string]bool{"reads nothing": false, "reads a byte at a time": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newPipeRig(t, func(o *Options) {
					o.StallTimeout, o.QueueTimeout, o.OnCancel = stallTimeout, 24*time.Hour, rank.Free
					o.Keys = Keys{By: ByMetadata, Metadata: "x-tenant"}
				})
				_, worker := g.pipeWorker("w1", 2)
				worker.Skip(testkit.Data, testkit.RST)
				l, other := g.local(Caller{}), g.pipeCaller()
				calls := make([]LocalCall, 2)
				for i := range calls {
					open(t, l, &calls[i], LocalRequest{Head: headOf(request(hello, "x-tenant", "local")...), Body: hi(), End: true})
					worker.WantHeaders(uint32(1+2*i), noEnd)
					worker.WriteHeaders(uint32(1+2*i), noEnd, responseHead()...)
					worker.WriteData(uint32(1+2*i), noEnd, make([]byte, 1000))
				}
				synctest.Wait()
				other.WriteHeaders(1, end, request(hello, "x-tenant", "other")...)
				for range 20 {
					pass(stallEvery)
					for i := range calls {
						if reads {
							if _, err := calls[i].Read(make([]byte, 1)); err != nil {
								t.Fatal(err)
							}
						}
					}
				}
				if n := g.counted("slot_reclaimed"); n != 0 && reads || n != 1 && !reads {
					t.Errorf("%d slots were reclaimed", n)
				}
				for i := range calls {
					calls[i].Close()
				}
				other.Close()
			})
		})
	}
}
