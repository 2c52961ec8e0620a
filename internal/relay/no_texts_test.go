package relay

import (
	"testing"
	"testing/synctest"
	"time"
)

// R1, R2: without refusal texts every answer is the application's own: HEADERS
// are not held for what may follow, and nothing moves.
func TestNoRefusalTexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t, func(o *Options) { o.Refusals = nil })
		_, worker := g.pipeWorker("w1", 2)
		caller := g.pipeCaller()
		began := time.Now()
		caller.WriteHeaders(1, end, request(hello)...)
		worker.WantHeaders(1, end)
		worker.WriteHeaders(1, noEnd, responseHead()...)
		caller.WantFields(1, noEnd, responseHead()...)
		wantTook(t, began, 0)
		worker.WriteHeaders(1, end, "grpc-status", "8", "grpc-message", rubyBusy)
		caller.WantFields(1, end, "grpc-status", "8", "grpc-message", rubyBusy)

		caller.WriteHeaders(3, end, request(hello)...)
		worker.WantHeaders(3, end)
		refuseWhole(pythonBusy)(worker, 3)
		wantStatus(caller, 3, "8", pythonBusy)
		worker.WantIdle()
		if n := g.counted("refused_by_worker"); n != 0 {
			t.Errorf("%d refusals were counted", n)
		}
	})
}
