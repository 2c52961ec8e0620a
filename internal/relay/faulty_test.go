package relay

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/testkit"
)

// A worker that answers quickly with faults of its own does not attract calls: one
// that serves them gets them, as long as it has a free slot.
func TestFaultyWorkerAttractsNoCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		_, good := g.pipeWorker("good", 2)
		_, bad := g.pipeWorker("bad", 2)
		caller := g.pipeCaller()
		toGood, toBad := uint32(1), uint32(1)
		served := 0
		for call := range uint32(200) {
			id := 1 + 2*call
			caller.WriteHeaders(id, end, request(hello)...)
			synctest.Wait()
			if inFlight := g.Rank().Endpoints; inFlight[0].InFlight > 0 {
				good.WantHeaders(toGood, end)
				pass(10 * time.Millisecond)
				reply(good, toGood)
				wantReply(caller, id)
				toGood += 2
				if call >= 100 {
					served++
				}
				continue
			}
			bad.WantHeaders(toBad, end)
			bad.WriteHeaders(toBad, end, ":status", "200", "content-type", "application/grpc", "grpc-status", "14")
			caller.WantFields(id, end, ":status", "200", "content-type", "application/grpc", "grpc-status", "14")
			toBad += 2
		}
		testkit.Want(t, served >= 95, "the worker that serves calls got %d of the last 100", served)
	})
}

func TestWhatIsAFault(t *testing.T) {
	faults := []grpcwire.Code{grpcwire.Unknown, grpcwire.Internal, grpcwire.Unavailable, grpcwire.DataLoss}
	for code := range grpcwire.Code(grpcwire.NumCodes) {
		a := attempt{call: &call{}, attemptFields: attemptFields{code: code, httpStatus: 200}}
		a.call.grpc = true
		if got, want := a.verdict() == rank.Faulty, slices.Contains(faults, code); got != want {
			t.Errorf("%v: got %v", code, got)
		}
	}
	for status, want := range map[int]bool{200: false, 404: false, 429: false, 500: true, 503: true} {
		a := attempt{call: &call{}, attemptFields: attemptFields{code: grpcwire.CodeFromHTTP(status), httpStatus: status}}
		testkit.Equal(t, a.verdict() == rank.Faulty, want, "HTTP %d", status)
	}
}
