package relay

import (
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/testkit"
)

// R9: a call joins the rank when its request has ended, when its first message
// is complete, or after 5 ms if nothing of one has come; a worker gets it whole.
func TestCallsGather(t *testing.T) {
	part := make([]byte, 16<<10)
	copy(part, []byte{0, 0, 1, 0, 0}) // of 64 KiB
	for name, row := range map[string]struct {
		send  func(caller *testkit.Peer)
		want  func(worker *testkit.Peer)
		after time.Duration
	}{
		"ended": {
			send: func(caller *testkit.Peer) { caller.WriteData(1, end, hi()[:2]) },
			want: func(worker *testkit.Peer) {
				worker.WantHeaders(1, noEnd)
				worker.WantDataBytes(1, hi()[:2], end)
			},
		},
		"first message": {
			send: func(caller *testkit.Peer) {
				caller.WriteData(1, noEnd, hi()[:2])
				caller.WriteData(1, noEnd, hi()[2:])
			},
			want: func(worker *testkit.Peer) {
				worker.WantHeaders(1, noEnd)
				worker.WantDataBytes(1, hi(), noEnd)
			},
		},
		"trailers": {
			send: func(caller *testkit.Peer) { caller.WriteHeaders(1, end, "x-last", "1") },
			want: func(worker *testkit.Peer) {
				worker.WantHeaders(1, end)
			},
		},
		"headers first": {
			send:  func(*testkit.Peer) {},
			want:  func(worker *testkit.Peer) { worker.WantHeaders(1, noEnd) },
			after: gatherFor,
		},
		"half a message, and the rest later": {
			send: func(caller *testkit.Peer) {
				caller.WriteData(1, noEnd, hi()[:2])
				pass(time.Minute)
				caller.WriteData(1, noEnd, hi()[2:])
			},
			want: func(worker *testkit.Peer) {
				worker.WantHeaders(1, noEnd)
				worker.WantDataBytes(1, hi(), noEnd)
			},
			after: time.Minute,
		},
		"the beginning of a large message": {
			send: func(caller *testkit.Peer) {
				caller.WriteData(1, noEnd, part)
				caller.WriteData(1, noEnd, part)
			},
			want: func(worker *testkit.Peer) {
				worker.WantHeaders(1, noEnd)
				worker.WantData(1, noEnd)
				worker.WantData(1, noEnd)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newPipeRig(t)
				_, worker := g.pipeWorker("w1", 1)
				caller := g.pipeCaller()
				began := time.Now()
				caller.WriteHeaders(1, noEnd, request(hello)...)
				worker.WantIdle()
				row.send(caller)
				row.want(worker)
				wantTook(t, began, row.after)
				caller.WriteRST(1, 8)
				worker.WantRST(1, 8)
			})
		})
	}
}

// R9: what ends a call that gathers ends it without a worker.
func TestEndsWhileGathering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		_, worker := g.pipeWorker("w1", 1)
		caller := g.pipeCaller()
		caller.WriteHeaders(1, noEnd, request(hello)...)
		caller.WriteRST(1, 8)
		caller.WriteHeaders(3, noEnd, request(hello, "grpc-timeout", "2m")...)
		wantStatus(caller, 3, "4", "cabrank: deadline exceeded in queue")
		worker.WantIdle()
	})
}

// R9: padding takes from the caller's window what its message needs; that leaves
// no call waiting for bytes which cannot come.
func TestPaddedBeginningOfALargeMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		_, worker := g.pipeWorker("w1", 1)
		worker.Skip(testkit.Data)
		caller := g.pipeCaller()
		caller.WriteHeaders(1, noEnd, request(hello)...)
		part := make([]byte, 400)
		copy(part, []byte{0, 0, 1, 0, 0}) // of 64 KiB
		for sent := int64(0); sent+656 <= streamWindow+caller.Credit(1) && g.Rank().Endpoints[0].InFlight == 0; sent += 656 {
			caller.WritePadded(1, noEnd, part, 255)
			synctest.Wait()
		}
		worker.WantHeaders(1, noEnd)
		caller.Close()
	})
}

// R9: so do calls for workers that cabrank has not started, and those that are not
// gRPC, of which only the end tells.
func TestAllCallsGather(t *testing.T) {
	for name, head := range map[string][]string{"gRPC": request(hello), "not gRPC": plain("POST", "/upload")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newPipeRig(t)
				e := g.AddEndpoint("elsewhere", 2, false)
				worker := testkit.NewWorker(t, g.pipe(e))
				worker.Greet()
				worker.Skip(testkit.WindowUpdate)
				caller := g.pipeCaller()
				caller.WriteHeaders(1, noEnd, head...)
				worker.WantIdle()
				caller.WriteData(1, end, hi())
				worker.WantHeaders(1, noEnd)
				worker.WantDataBytes(1, hi(), end)
				caller.WriteHeaders(3, noEnd, head...)
				began := time.Now()
				worker.WantHeaders(3, noEnd)
				wantTook(t, began, gatherFor)
				caller.Close()
			})
		})
	}
}

// R9: a call that never sends the rest of its message ends without a worker, when
// no byte has come for stall_timeout.
func TestGivenUpWhileGathering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := stallRig(t)
		_, worker := g.pipeWorker("w1", 1)
		caller := g.pipeCaller()
		caller.WriteHeaders(1, noEnd, request(hello)...)
		for range 4 {
			caller.WriteData(1, noEnd, []byte{0})
			pass(stallTimeout - time.Second)
		}
		if n := g.counted("caller_stalled"); n != 0 {
			t.Error("a call was ended that still sends")
		}
		pass(stallTimeout + time.Second)
		wantStatus(caller, 1, "10", "cabrank: caller stalled")
		worker.WantIdle()
		g.wantHeld(0)
	})
}

// teach has a method answered so often that its order is known.
func teach(caller, worker *testkit.Peer) (next uint32) {
	for n := range uint32(enoughAnswers) {
		caller.WriteHeaders(1+2*n, noEnd, request(hello)...)
		caller.WriteData(1+2*n, end, hi())
		worker.WantHeaders(1+2*n, noEnd)
		worker.WantDataBytes(1+2*n, hi(), end)
		reply(worker, 1+2*n)
		wantReply(caller, 1+2*n)
	}
	return 1 + 2*enoughAnswers
}

// R9: a method whose workers were never seen to speak first has a call wait longer
// for its first byte; one that does all the same is known from then on.
func TestWorkersThatSpeakFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		_, worker := g.pipeWorker("w1", 5)
		caller := g.pipeCaller()
		next := teach(caller, worker)
		for _, patience := range []time.Duration{gatherLonger, gatherFor, gatherFor} {
			began := time.Now()
			caller.WriteHeaders(next, noEnd, request(hello)...)
			worker.WantHeaders(next, noEnd)
			wantTook(t, began, patience)
			worker.WriteHeaders(next, noEnd, responseHead()...)
			caller.WantFields(next, noEnd, responseHead()...)
			next += 2
		}
		caller.Close()
	})
}

// A worker that refuses a call by its HEADERS teaches nothing: else one caller
// without a password would have the others wait less for theirs.
func TestRefusedHeadersTeachNoOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		_, worker := g.pipeWorker("w1", 5)
		caller := g.pipeCaller()
		next := teach(caller, worker)
		caller.WriteHeaders(next, noEnd, request(hello)...)
		worker.WantHeaders(next, noEnd)
		worker.WriteHeaders(next, end, append(responseHead(), "grpc-status", "16")...)
		caller.WantHeaders(next, end)
		caller.WantRST(next, http2.ErrCodeNo)
		worker.WantRST(next, http2.ErrCodeCancel)
		began := time.Now()
		caller.WriteHeaders(next+2, noEnd, request(hello)...)
		worker.WantHeaders(next+2, noEnd)
		wantTook(t, began, gatherLonger)
		caller.Close()
	})
}

// R11: what calls hold that have not joined the rank yet counts like what waits
// there, and goes first where it is the newest.
func TestGatheringCallsAreShed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t, func(o *Options) { o.Limits.Buffer, o.Limits.Window = 1<<20+64*waitingSize, 256<<10 })
		_, worker := g.pipeWorker("w1", 1)
		caller := g.pipeCaller()
		caller.AnyOrder()
		part := make([]byte, 16<<10)
		copy(part, []byte{0, 0, 1, 0, 0}) // of 64 KiB
		for n := range uint32(70) {
			caller.WriteHeaders(1+2*n, noEnd, request(hello)...)
			caller.WriteData(1+2*n, noEnd, part)
		}
		for n := uint32(64); n < 70; n++ {
			wantStatus(caller, 1+2*n, "8", "cabrank: queue full")
		}
		g.wantHeld(1 << 20)
		worker.WantIdle()
		for range 4 { // the rest and more of the first
			caller.WriteData(1, noEnd, part)
		}
		worker.WantHeaders(1, noEnd)
		synctest.Wait()
		g.wantHeld(60 * 16 << 10) // three more had to make room for it
		caller.Close()
	})
}

// R9, the bar: 20 callers that send a byte at a time do not hold workers, so that
// each of the others finds a slot at once.
func TestByteAtATimeBesideOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := stallRig(t)
		var workers [2]*testkit.Peer
		for i := range workers {
			_, workers[i] = g.pipeWorker("w", 1)
			workers[i].AnyOrder()
		}
		caller := g.pipeCaller()
		slow := make([]*testkit.Peer, 20)
		message := append([]byte{0, 0, 0, 0, 100}, make([]byte, 100)...)
		answered := [2]uint32{1, 1}
		serve := func(stream uint32) {
			caller.WriteHeaders(stream, noEnd, request(hello)...)
			caller.WriteData(stream, end, hi())
			synctest.Wait()
			i := 0
			if g.Rank().Endpoints[0].InFlight == 0 {
				i = 1
			}
			workers[i].WantHeaders(answered[i], noEnd)
			workers[i].WantDataBytes(answered[i], hi(), end)
			pass(time.Millisecond)
			reply(workers[i], answered[i])
			answered[i] += 2
			wantReply(caller, stream)
		}
		stream := uint32(1)
		for range 2 * enoughAnswers {
			serve(stream)
			stream += 2
		}
		for i := range slow {
			slow[i] = g.pipeCaller()
			slow[i].WriteHeaders(1, noEnd, request(hello)...)
		}
		for n := range message[:len(message)-1] {
			pass(100 * time.Millisecond)
			for _, p := range slow {
				p.WriteData(1, noEnd, message[n:n+1])
			}
			serve(stream)
			stream += 2
		}
		if m := g.Stats().of(t, hello); m.Wait.Sum != 0 {
			t.Errorf("calls have waited for %v s in all", m.Wait.Sum)
		}
		for _, p := range slow {
			p.Close()
		}
	})
}
