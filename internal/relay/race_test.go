package relay

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/testkit"
)

// A grant that is on its way from another shard while its call is given up is
// handed back: the slot serves whoever is next (R21, R23).
func TestGrantMeetsCancel(t *testing.T) {
	for name, giveUp := range map[string]func(*call){
		"cancelled": func(c *call) { c.abandoned(c.st.Now()) },
		"deadline":  func(c *call) { c.fail(endedDeadlineQueued, c.st.Now()) },
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, func(o *Options) { o.Shards = 2 })
			_, accept := g.worker("w1", 1)
			first, second := g.caller(), g.caller() // one on each shard
			first.WriteHeaders(1, end, request(hello)...)
			worker := accept()
			worker.WantHeaders(1, end)
			second.WriteHeaders(1, noEnd, request(hello)...)
			second.WriteData(1, end, hi())
			var waits *stand
			testkit.Eventually(t, soon, "the call in the queue", func() bool {
				g.each(func(st *stand) {
					if st.someWaiting() != nil {
						waits = st
					}
				})
				return waits != nil
			})
			second.Skip(testkit.Headers, testkit.RST)
			waits.do(func() {
				c := waits.someWaiting()
				reply(worker, 1)
				wantReply(first, 1)
				g.wantWaiting(0) // granted, and nobody can be told as long as we hold the lock
				giveUp(c)
				if !c.awaited || c.lease.Valid() {
					t.Error("the call must wait for its grant before it is used again")
				}
			})
			first.WriteHeaders(3, end, request(hello)...)
			worker.WantHeaders(3, end)
			reply(worker, 3)
			wantReply(first, 3)
			g.wantInFlight(0)
		})
	}
}

// A call that waits for its second turn goes on taking what its caller sends.
func TestRequestGrowsBetweenTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		e, worker := g.pipeWorker("w1", 1)
		caller := g.pipeCaller()
		caller.WriteHeaders(1, noEnd, request(hello)...)
		worker.WantHeaders(1, noEnd)
		caller.WriteData(1, noEnd, []byte("one "))
		worker.WantDataBytes(1, []byte("one "), noEnd)
		g.Down(e)
		worker.WriteRST(1, http2.ErrCodeRefusedStream)
		synctest.Wait()
		caller.WriteData(1, end, []byte("two "))
		caller.WantIdle()
		_, other := g.pipeWorker("w2", 1)
		other.WantFields(1, noEnd, passedOn(request(hello))...)
		other.WantDataBytes(1, []byte("one two "), end)
		reply(other, 1)
		wantReply(caller, 1)
	})
}

// A call that was answered by cabrank and waits for its caller's window ends at
// its deadline all the same.
func TestDeadlineBehindRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		_, worker := g.pipeWorker("w1", 1)
		caller := g.pipeCaller()
		caller.WriteSettings(noWindow())
		caller.WantSettingsAck()
		began := time.Now()
		caller.WriteHeaders(1, end, request(hello, "grpc-timeout", "1S")...)
		worker.WantHeaders(1, end)
		worker.WriteHeaders(1, noEnd, responseHead()...)
		worker.WriteData(1, noEnd, hi())
		caller.WantFields(1, noEnd, responseHead()...)
		worker.Close()
		caller.WantIdle()
		caller.WantFields(1, end, "grpc-status", "4", "grpc-message", "cabrank: deadline exceeded")
		wantTook(t, began, time.Second)
		if lost, late := g.counted("worker_lost"), g.counted("deadline"); lost != 1 || late != 0 {
			t.Errorf("one call was counted %d times as lost and %d times as late", lost, late)
		}
	})
}

// A refusal's text waits for the caller's window, and nothing is left if the
// caller leaves instead of reading it.
func TestRefusalWaitsForWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t, withQueue(0, time.Second))
		caller := g.pipeCaller()
		caller.WriteSettings(noWindow())
		caller.WantSettingsAck()
		for _, stream := range []uint32{1, 3} {
			caller.WriteHeaders(stream, end, plain("GET", "/")...)
			caller.WantHeaders(stream, noEnd)
			caller.WantIdle()
		}
		caller.WriteWindowUpdate(1, 8)
		caller.WantDataBytes(1, []byte("cabrank:"), noEnd)
		caller.WriteWindowUpdate(1, 100)
		caller.WantDataBytes(1, []byte(" queue full\n"), end)
		caller.WriteRST(3, http2.ErrCodeCancel)
	})
}

// Trailers of an answer above the limit of header lists end the call like headers do.
func TestTrailersTooLarge(t *testing.T) {
	g := newRig(t)
	_, accept := g.worker("w1", 1)
	caller := g.caller()
	large := []string{"x-large", strings.Repeat("~", 20<<10)}
	caller.WriteHeaders(1, end, request(hello)...)
	worker := accept()
	worker.WantHeaders(1, end)
	worker.WriteHeaders(1, noEnd, responseHead()...)
	worker.WriteData(1, noEnd, hi())
	worker.WriteHeaders(1, end, large...)
	caller.WantFields(1, noEnd, responseHead()...)
	caller.WantDataBytes(1, hi(), noEnd)
	caller.WantFields(1, end, "grpc-status", "8", "grpc-message", "cabrank: headers too large")
}

// A caller that gives credit byte by byte gets its bytes, in order.
func TestCreditByteByByte(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		_, worker := g.pipeWorker("w1", 1)
		caller := g.pipeCaller()
		caller.WriteSettings(noWindow())
		caller.WantSettingsAck()
		body := make([]byte, 900) // as many updates as a caller may send
		for i := range body {
			body[i] = byte(i)
		}
		caller.WriteHeaders(1, end, plain("GET", "/")...)
		worker.WantHeaders(1, end)
		worker.WriteHeaders(1, noEnd, ":status", "200")
		worker.WriteData(1, noEnd, body[:600])
		caller.WantFields(1, noEnd, ":status", "200")
		for i := range body {
			if i == 450 {
				worker.WriteData(1, end, body[600:])
				synctest.Wait()
			}
			caller.WriteWindowUpdate(1, 1)
			caller.WantDataBytes(1, body[i:i+1], testkit.EndStream(i == len(body)-1))
		}
	})
}
