package relay

import (
	"fmt"
	"testing"
	"testing/synctest"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/testkit"
)

// R4, RFC 9113 6.8: calls above the last stream id of a GOAWAY move to another
// worker, all others stay; when the worker then goes without their answers,
// they are lost. Calls 1, 3 and 5 are under way, 5 has begun to be answered and
// cannot move (R3). The code of the GOAWAY makes no difference.
func TestEachGoAway(t *testing.T) {
	const most = 1<<31 - 1
	for _, tt := range []struct {
		name string
		last []uint32
		stay int // calls that the worker still has
	}{
		{"of nothing", []uint32{0}, 0},
		{"below the first of several", []uint32{1}, 1},
		{"between, an id of its own", []uint32{2}, 1},
		{"between", []uint32{3}, 2},
		{"between, even", []uint32{4}, 2},
		{"at the last", []uint32{5}, 3},
		{"above the last", []uint32{7}, 3},
		{"of everything", []uint32{most}, 3},
		{"two steps", []uint32{most, 3}, 2},
		{"two steps, nothing", []uint32{most, 0}, 0},
		{"the same again", []uint32{3, 3}, 2},
		{"rising", []uint32{1, 5}, 1},
		{"rising to everything", []uint32{3, most}, 2},
		{"rising from nothing", []uint32{0, most}, 0},
		{"falling", []uint32{5, 3, 1}, 1},
	} {
		for _, code := range []http2.ErrCode{http2.ErrCodeNo, http2.ErrCodeEnhanceYourCalm} {
			t.Run(fmt.Sprintf("%s, %v", tt.name, code), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { eachGoAway(t, tt.last, tt.stay, code) })
			})
		}
	}
}

func eachGoAway(t *testing.T, last []uint32, stay int, code http2.ErrCode) {
	t.Helper()
	g := newPipeRig(t)
	e, bad := g.foreign("unruly", 3)
	caller := g.pipeCaller()
	caller.AnyOrder()
	for _, stream := range []uint32{1, 3, 5} {
		caller.WriteHeaders(stream, end, request(hello)...)
		bad.WantHeaders(stream, end)
	}
	bad.WriteHeaders(5, noEnd, responseHead()...)
	caller.WantFields(5, noEnd, responseHead()...)
	_, good := g.foreign("good", 3)
	good.AnyOrder()
	bad.Fragile() // without calls its connection ends
	for _, id := range last {
		bad.WriteGoAway(id, code, "")
	}
	if stay < 3 {
		caller.WantFields(5, end, "grpc-status", "14", "grpc-message", "cabrank: worker lost")
	}
	moved := 2 - min(stay, 2)
	for n := range uint32(moved) {
		good.WantHeaders(2*n+1, end)
		reply(good, 2*n+1)
	}
	for n := range moved {
		wantReply(caller, uint32(3-2*n))
	}
	caller.WantIdle()
	good.WantIdle()
	g.wantRunning(e, stay)
	bad.Skip(testkit.RST) // what moves is not left to run twice
	bad.Close()
	for n := range min(stay, 2) {
		wantStatus(caller, uint32(2*n+1), "14", "cabrank: worker lost")
	}
	if stay == 3 {
		caller.WantFields(5, end, "grpc-status", "14", "grpc-message", "cabrank: worker lost")
	}
	caller.WantIdle()
	good.WantIdle()
	g.wantInFlight(0)
	if n := g.counted("moved"); n != uint64(moved) {
		t.Errorf("%d calls have moved, want %d", n, moved)
	}
}

// R13: each code of RST_STREAM at each stage: it is passed on as it is, but
// REFUSED_STREAM, with which the call moves while it can (R1, R4) and which no
// caller must see afterwards (R3); behind the end it changes nothing.
func TestEachReset(t *testing.T) {
	codes := []http2.ErrCode{0xff, 1<<32 - 1} // nobody has defined these (RFC 9113 7)
	for code := http2.ErrCodeNo; code <= http2.ErrCodeHTTP11Required; code++ {
		codes = append(codes, code)
	}
	for _, code := range codes {
		for _, at := range []stage{asked, begun, flowing, finished} {
			t.Run(fmt.Sprintf("%v, %v", code, at), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { eachReset(t, code, at) })
			})
		}
	}
}

func eachReset(t *testing.T, code http2.ErrCode, at stage) {
	t.Helper()
	u := newUnruly(t, at)
	u.worker.WriteRST(1, code)
	next := uint32(3) // of the good worker
	switch {
	case at == finished:
	case code != http2.ErrCodeRefusedStream:
		u.caller.WantRST(1, code)
	case at == asked:
		u.good.WantFields(next, end, passedOn(request(hello))...)
		reply(u.good, next)
		wantReply(u.caller, 1)
	default:
		u.wantFailed(1, at, "14", "cabrank: worker refused the call late")
	}
	u.worker.WantIdle()
	u.wantRunning(u.endpoint, 1)
	reply(u.worker, 3)
	wantReply(u.caller, 3)
	u.caller.WantIdle()
	u.beside.WantIdle()
	reply(u.good, 1)
	wantReply(u.beside, 1)
	u.wantInFlight(0)
}

// R11: a worker that never reads holds back the calls that it was given, and
// no one else's: what waits for it is bounded by the windows of the calls.
// When it goes, what was still in our buffer moves (R4), the rest is lost.
func TestWorkerNeverReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls = 60
		g := newPipeRig(t)
		e, bad, nc := g.foreignConn("unruly", calls)
		bad.StopReading()
		caller, beside := g.pipeCaller(), g.pipeCaller()
		caller.AnyOrder()
		body := make([]byte, 16384)
		for n := range uint32(calls) {
			caller.WriteHeaders(2*n+1, noEnd, request(hello)...)
			synctest.Wait() // the first is in the transport's hands, the others are in our buffer
			for range 4 {   // the whole window
				caller.WriteData(2*n+1, noEnd, body)
			}
		}
		g.wantRunning(e, calls)
		// One window of each call, and what went out meanwhile once more, in
		// buffers of a power of two.
		if used, most := g.budget.Used(), int64(calls*2*streamWindow+2*outputHigh); used > most {
			t.Errorf("%d bytes are in use, want at most %d", used, most)
		}
		_, good := g.foreign("good", calls+1)
		for n := range uint32(20) {
			beside.WriteHeaders(2*n+1, end, request(hello)...)
			good.WantHeaders(2*n+1, end)
			reply(good, 2*n+1)
			wantReply(beside, 2*n+1)
		}
		g.wantRunning(e, calls)
		nc.Close()
		wantMovedOrLost(t, g, caller, good, calls)
	})
}

// wantMovedOrLost has the good worker answer what moves to it, until each of
// the caller's calls has one end.
func wantMovedOrLost(t *testing.T, g *rig, caller, good *testkit.Peer, calls int) {
	t.Helper()
	good.AnyOrder()
	good.Skip(testkit.RST, testkit.Data)
	synctest.Wait()
	moved := int(g.counted("moved"))
	if moved != calls-1 {
		t.Errorf("%d of %d calls have moved", moved, calls)
	}
	for n := range uint32(moved) {
		good.WantHeaders(41+2*n, noEnd)
		good.WriteHeaders(41+2*n, end, append(responseHead(), "grpc-status", "0")...)
	}
	ends := map[string]int{}
	caller.Skip(testkit.RST)
	for n := range uint32(calls) {
		fields := caller.WantHeaders(2*n+1, end)
		ends[testkit.Value(fields, "grpc-status")+" "+testkit.Value(fields, "grpc-message")]++
	}
	if ends["0 "] != moved || ends["14 cabrank: worker lost"] != calls-moved {
		t.Errorf("%d calls have moved; ends: %v", moved, ends)
	}
	caller.WantIdle()
	g.wantInFlight(0)
}

// RFC 9113 8.1: a worker may end its answer before the request has ended, and
// say with NO_ERROR that it wants no more of it. The caller gets the whole
// answer and NO_ERROR, whatever it sends meanwhile; the slot is free.
func TestAnswerBeforeEndOfRequestWithReset(t *testing.T) {
	for name, answer := range map[string]func(*testkit.Peer){
		"whole": func(w *testkit.Peer) { reply(w, 1) },
		"trailers-only": func(w *testkit.Peer) {
			w.WriteHeaders(1, end, append(responseHead(), "grpc-status", "16", "grpc-message", "no")...)
		},
	} {
		for _, together := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, together %t", name, together), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					g := newPipeRig(t)
					_, worker := g.foreign("hasty", 1)
					caller := g.pipeCaller()
					caller.WriteHeaders(1, noEnd, request(hello)...)
					caller.WriteData(1, noEnd, hi())
					worker.WantHeaders(1, noEnd)
					worker.WantDataBytes(1, hi(), noEnd)
					both := func() { answer(worker); worker.WriteRST(1, http2.ErrCodeNo) }
					if together {
						worker.Batch(both)
					} else {
						both()
					}
					if name == "whole" {
						wantReply(caller, 1)
					} else {
						caller.WantFields(1, end, append(responseHead(), "grpc-status", "16", "grpc-message", "no")...)
					}
					caller.WantRST(1, http2.ErrCodeNo)
					caller.WriteData(1, noEnd, make([]byte, 16384))
					caller.WriteData(1, end, hi())
					caller.WantIdle()
					worker.WantRST(1, http2.ErrCodeCancel)
					worker.WantIdle()
					caller.WriteHeaders(3, end, request(hello)...)
					worker.WantHeaders(3, end)
					reply(worker, 3)
					wantReply(caller, 3)
				})
			})
		}
	}
}
