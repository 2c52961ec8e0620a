package relay

import (
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

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
