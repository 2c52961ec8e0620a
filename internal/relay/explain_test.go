package relay

import (
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/testkit"
)

func explaining(o *Options) { o.Explain = true }

// Trailers of a worker tell how long the call waited and who served it, behind
// all that the worker said, also where they are the whole answer.
func TestAnswersExplainThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t, explaining)
		_, worker := g.pipeWorker("worker-1", 1)
		caller := g.pipeCaller()
		caller.WriteHeaders(1, end, request(hello)...)
		caller.WriteHeaders(3, end, request(hello)...)
		worker.WantHeaders(1, end)
		pass(12*time.Millisecond + 500*time.Microsecond)
		reply(worker, 1)
		caller.WantFields(1, noEnd, responseHead()...)
		caller.WantDataBytes(1, hi(), noEnd)
		caller.WantFields(1, end, "grpc-status", "0", queueField, "0", workerField, "worker-1")
		worker.WantHeaders(3, end)
		worker.WriteHeaders(3, end, append(responseHead(), "grpc-status", "5")...)
		caller.WantFields(3, end, append(responseHead(), "grpc-status", "5", queueField, "12.5", workerField, "worker-1")...)
	})
}

// They also come behind an answer that waits for the caller's window.
func TestLateTrailersExplainThemselves(t *testing.T) {
	g := newRig(t, explaining)
	_, accept := g.worker("worker-1", 1)
	caller := testkit.DialCaller(t, g.addr)
	caller.Greet(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 4})
	caller.Skip(testkit.WindowUpdate)
	caller.WriteHeaders(1, end, request(hello)...)
	worker := accept()
	worker.WantHeaders(1, end)
	reply(worker, 1)
	caller.WantFields(1, noEnd, responseHead()...)
	caller.WantDataBytes(1, hi()[:4], noEnd)
	g.wantInFlight(0)
	caller.WriteWindowUpdate(1, 100)
	caller.WantDataBytes(1, hi()[4:], noEnd)
	caller.WantFields(1, end, "grpc-status", "0", queueField, "0", workerField, "worker-1")
}

// Answers of cabrank's own tell the time in the queue, in either form.
func TestOwnAnswersExplainThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t, explaining, withQueue(9, 20*time.Millisecond))
		caller := g.pipeCaller()
		caller.WriteHeaders(1, end, request(hello)...)
		caller.WantFields(1, end, ":status", "200", "content-type", "application/grpc",
			"grpc-status", "14", "grpc-message", "cabrank: no worker ready", queueField, "20")
		caller.WriteHeaders(3, end, plain("HEAD", "/page")...)
		caller.WantFields(3, end, ":status", "503", "content-type", "text/plain; charset=utf-8",
			"content-length", "25", queueField, "20")
	})
}

// Answers to requests that are not gRPC stay as they are: few read trailers.
func TestPlainAnswersAreLeftAlone(t *testing.T) {
	g := newRig(t, explaining)
	_, accept := g.worker("worker-1", 1)
	caller := g.caller()
	caller.WriteHeaders(1, end, plain("GET", "/page")...)
	worker := accept()
	worker.WantHeaders(1, end)
	worker.WriteHeaders(1, noEnd, ":status", "200")
	worker.WriteHeaders(1, end, "x-sum", "1")
	caller.WantFields(1, noEnd, ":status", "200")
	caller.WantFields(1, end, "x-sum", "1")
}

// Of two attempts at the same time the one is named that answered, and their
// time at workers counts once.
func TestHedgeIsExplained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRace(t, explaining)
		r.hedge()
		pass(late / 2)
		answer := append(responseHead(), "grpc-status", "0")
		r.w2.WriteHeaders(1, end, answer...)
		r.caller.WantFields(1, end, append(answer, queueField, "0", workerField, "w2")...)
		r.w1.WantRST(1, http2.ErrCodeCancel)
		synctest.Wait()
		wantSeconds(t, "at workers", r.Stats().of(t, hello).Work.Sum, late+late/2)
	})
}
