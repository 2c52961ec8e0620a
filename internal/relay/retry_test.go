package relay

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/testkit"
)

// withRule gives the test's method a rule, and a budget that is never empty.
func withRule(rule MethodRule) func(*Options) {
	rule.Pattern = hello
	return func(o *Options) {
		o.Methods = []MethodRule{rule}
		o.RetryBudget = RetryBudget{PerSecond: 1000}
	}
}

// twice is a rule by which a call is tried up to three times.
func twice() MethodRule {
	return MethodRule{Idempotent: true, Retries: 2, RetryOn: []grpcwire.Code{grpcwire.Unavailable}}
}

func answerWhole(code string, more ...string) func(*testkit.Peer, uint32) {
	return func(w *testkit.Peer, stream uint32) {
		w.WriteHeaders(stream, end, append(append(responseHead(), "grpc-status", code), more...)...)
	}
}

// A call that pauses between two attempts counts as one that holds bytes, and can be shed.
func TestPausingCallsAreShed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t, withRule(twice()))
		_, worker := g.pipeWorker("w1", 1)
		caller := g.pipeCaller()
		caller.WriteHeaders(1, noEnd, request(hello)...)
		caller.WriteData(1, end, hi())
		worker.WantHeaders(1, noEnd)
		worker.WantDataBytes(1, hi(), end)
		answerWhole("14", "grpc-retry-pushback-ms", "500")(worker, 1)
		synctest.Wait()
		g.wantInFlight(0)
		g.stands[0].do(func() {
			st := g.stands[0]
			if st.someWaiting() == nil {
				t.Fatal("it does not count")
			}
			st.someWaiting().fail(endedBuffer, st.Now())
		})
		wantStatus(caller, 1, "8", "cabrank: queue full")
		pass(time.Second)
		worker.WantIdle()
	})
}

// A call whose method has a policy costs no allocation either.
func TestCallWithPolicyAllocatesNothing(t *testing.T) {
	rule := twice()
	rule.HedgeAfter = time.Second
	g := newRig(t, withRule(rule))
	m := newMemory(t, g, true, 1)
	m.st.do(func() {
		m.drainOutput(m.worker)
		m.drainOutput(m.caller)
		for range 100 {
			m.call()
		}
		if n := testing.AllocsPerRun(1000, m.call); n != 0 {
			t.Errorf("a call allocates %v times", n)
		}
	})
}
