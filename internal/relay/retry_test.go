package relay

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

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

func answerInTwo(code string) func(*testkit.Peer, uint32) {
	return func(w *testkit.Peer, stream uint32) {
		w.Batch(func() {
			w.WriteHeaders(stream, noEnd, responseHead()...)
			w.WriteHeaders(stream, end, "grpc-status", code)
		})
	}
}

// A6: a call of an idempotent method that failed is sent once more, to another
// endpoint, as it came and with the number of attempts before it. Its caller
// sees only the answer, and it is one call.
func TestRetry(t *testing.T) {
	for name, c := range map[string]struct {
		fail   func(*testkit.Peer, uint32)
		reason string
	}{
		"trailers-only":    {answerWhole("14"), "status"},
		"two blocks":       {answerInTwo("14"), "status"},
		"RST_STREAM":       {func(w *testkit.Peer, s uint32) { w.WriteRST(s, http2.ErrCodeInternal) }, "reset"},
		"connection lost":  {func(w *testkit.Peer, _ uint32) { w.Close() }, "worker_lost"},
		"HEADERS and lost": {func(w *testkit.Peer, s uint32) { w.WriteHeaders(s, noEnd, responseHead()...); w.Close() }, "worker_lost"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rule := twice()
				rule.RetryOn = append(rule.RetryOn, grpcwire.Internal)
				g := newPipeRig(t, withRule(rule))
				_, w1 := g.pipeWorker("w1", 9)
				caller := g.pipeCaller()
				caller.Batch(func() {
					caller.WriteHeaders(1, noEnd, request(hello)...)
					caller.WriteData(1, end, hi())
				})
				w1.WantFields(1, noEnd, passedOn(request(hello))...)
				w1.WantDataBytes(1, hi(), end)
				_, w2 := g.pipeWorker("w2", 1)
				began := time.Now()
				c.fail(w1, 1)
				w2.WantFields(1, noEnd, append(passedOn(request(hello)), triesName, "1")...)
				wantTook(t, began, firstBackOff/2) // half of the longest wait: Options.Random
				w2.WantDataBytes(1, hi(), end)
				reply(w2, 1)
				wantReply(caller, 1)
				stats := g.Stats()
				if n := stats.Retries[c.reason]; n != 1 {
					t.Errorf("retries: %v", stats.Retries)
				}
				if codes := stats.of(t, hello).Codes; len(codes) != 1 || codes["OK"] != 1 {
					t.Errorf("counted as %v, want one OK", codes)
				}
			})
		})
	}
}

// A6: the waits double, random up to the longest; after as many retries as the
// rule has the worker's own answer is passed on.
func TestRetriesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rule := twice()
		rule.Retries = 5
		g := newPipeRig(t, withRule(rule))
		_, worker := g.pipeWorker("w1", 9)
		caller := g.pipeCaller()
		caller.WriteHeaders(1, end, request(hello)...)
		for try := range 6 {
			began := time.Now()
			fields := worker.WantHeaders(uint32(1+2*try), end)
			if try > 0 {
				wantTook(t, began, firstBackOff<<(try-1)/2)
			}
			if got := testkit.Value(fields, triesName); (try > 0 || got != "") && got != strconv.Itoa(try) {
				t.Errorf("attempt %d has %q before it", try, got)
			}
			answerWhole("14", "grpc-message", "again "+strconv.Itoa(try))(worker, uint32(1+2*try))
		}
		caller.WantFields(1, end, append(responseHead(), "grpc-status", "14", "grpc-message", "again 5")...)
		worker.WantIdle()
	})
}

// R3: what cannot be tried again, or must not be, reaches the caller.
func TestNoRetry(t *testing.T) {
	rule := twice()
	once := func(change func(*MethodRule)) func(*Options) {
		r := twice()
		change(&r)
		return withRule(r)
	}
	all := withRule(rule)
	for name, c := range map[string]struct {
		change func(*Options)
		fail   func(*testkit.Peer, uint32)
		body   int
		denied string
	}{
		"not idempotent": {once(func(r *MethodRule) { r.Idempotent = false }), answerWhole("14"), 9, ""},
		"no retries":     {once(func(r *MethodRule) { r.Retries = 0 }), answerWhole("14"), 9, ""},
		"another method": {func(o *Options) { all(o); o.Methods[0].Pattern += "s" }, answerWhole("14"), 9, ""},
		"another code":   {all, answerWhole("13"), 9, ""},
		"another reset":  {all, func(w *testkit.Peer, s uint32) { w.WriteRST(s, http2.ErrCodeInternal) }, 9, ""},
		"committed": {all, func(w *testkit.Peer, s uint32) {
			w.WriteHeaders(s, noEnd, responseHead()...)
			w.WriteData(s, noEnd, hi())
			w.Close()
		}, 9, ""},
		"too large":       {func(o *Options) { all(o); o.ReplayBytes = 100 }, answerWhole("14"), 101, ""},
		"pushback -1":     {all, answerWhole("14", "grpc-retry-pushback-ms", "-1"), 9, "pushback"},
		"pushback text":   {all, answerWhole("14", "grpc-retry-pushback-ms", "soon"), 9, "pushback"},
		"pushback empty":  {all, answerWhole("14", "grpc-retry-pushback-ms", ""), 9, "pushback"},
		"pushback 64 bit": {all, answerWhole("14", "grpc-retry-pushback-ms", "4294967296"), 9, "pushback"},
		"pushback long":   {all, answerWhole("14", "grpc-retry-pushback-ms", "30001"), 9, "pushback"},
		"pushback late":   {all, answerWhole("14", "grpc-retry-pushback-ms", "9500"), 9, "deadline"},
		"budget":          {func(o *Options) { all(o); o.RetryBudget = RetryBudget{} }, answerWhole("14"), 9, "budget"},
		"budget, lost":    {func(o *Options) { all(o); o.RetryBudget = RetryBudget{} }, func(w *testkit.Peer, _ uint32) { w.Close() }, 9, "budget"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newPipeRig(t, c.change)
				_, w1 := g.pipeWorker("w1", 9)
				caller := g.pipeCaller()
				caller.WriteHeaders(1, noEnd, request(hello, "grpc-timeout", "9S")...)
				caller.WriteData(1, end, make([]byte, c.body))
				w1.WantHeaders(1, noEnd)
				w1.WantDataBytes(1, make([]byte, c.body), end)
				_, w2 := g.pipeWorker("w2", 9)
				began := time.Now()
				c.fail(w1, 1)
				caller.Skip(testkit.Headers, testkit.Data, testkit.RST, testkit.WindowUpdate)
				synctest.Wait()
				g.wantInFlight(0)
				wantTook(t, began, 0)
				pass(20 * time.Second)
				w2.WantIdle()
				stats := g.Stats()
				for why, n := range stats.RetriesDenied {
					if want := why == c.denied; want != (n == 1) || n > 1 {
						t.Errorf("denied: %v, want one %q", stats.RetriesDenied, c.denied)
					}
				}
				for why, n := range stats.Retries {
					if n > 0 {
						t.Errorf("%d retries by %s", n, why)
					}
				}
			})
		})
	}
}

// A6, pushback: the worker says when to come again, and what follows begins with
// the shortest wait.
func TestRetryPushback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rule := twice()
		rule.Retries = 5
		g := newPipeRig(t, withRule(rule))
		_, worker := g.pipeWorker("w1", 9)
		caller := g.pipeCaller()
		caller.WriteHeaders(1, end, request(hello)...)
		worker.WantHeaders(1, end)
		stream := uint32(1)
		for _, c := range []struct {
			pushback []string
			wait     time.Duration
		}{
			{nil, firstBackOff / 2},
			{nil, firstBackOff},
			{[]string{"grpc-retry-pushback-ms", "29999"}, 29999 * time.Millisecond},
			{nil, firstBackOff / 2},
			{[]string{"grpc-retry-pushback-ms", "0"}, 0},
		} {
			began := time.Now()
			answerWhole("14", c.pushback...)(worker, stream)
			stream += 2
			pass(c.wait - c.wait/10) // WantHeaders alone does not wait so long
			worker.WantHeaders(stream, end)
			wantTook(t, began, c.wait)
		}
		reply(worker, stream)
		wantReply(caller, 1)
	})
}

// A6: attempts that the caller has made count, too, in the place where it said
// so; attempts that were refused without a look do not (R4).
func TestPreviousAttempts(t *testing.T) {
	for _, c := range []struct{ came, goes []string }{
		{[]string{"x-a", "1"}, []string{"x-a", "1", "x-cabrank-hops", "1", triesName, "1"}},
		{[]string{triesName, "2", "x-a", "1"}, []string{triesName, "3", "x-a", "1", "x-cabrank-hops", "1"}},
		{[]string{"x-a", "1", triesName, "many"}, []string{"x-a", "1", triesName, "1", "x-cabrank-hops", "1"}},
		{[]string{triesName, "9999999999"}, []string{triesName, "1", "x-cabrank-hops", "1"}},
	} {
		for _, timeout := range []string{"", "before", "after"} {
			synctest.Test(t, func(t *testing.T) {
				came, goes := c.came, c.goes
				switch timeout {
				case "before":
					came, goes = append([]string{"grpc-timeout", "9S"}, came...), append([]string{"grpc-timeout", "*"}, goes...)
				case "after":
					came = append(append([]string{}, came...), "grpc-timeout", "9S")
					at := len(c.came)
					goes = append(append(append([]string{}, goes[:at]...), "grpc-timeout", "*"), goes[at:]...)
				}
				g := newPipeRig(t, withRule(twice()))
				_, worker := g.pipeWorker("w1", 9)
				caller := g.pipeCaller()
				caller.WriteHeaders(1, end, request(hello, came...)...)
				first := worker.WantHeaders(1, end)
				if was, is := fieldsOf(came, triesName), testkit.Value(first, triesName); was != is {
					t.Errorf("%v: the first attempt says %q", came, is)
				}
				refuseByReset(worker, 1)
				worker.WantHeaders(3, end)
				answerWhole("14")(worker, 3)
				for _, stream := range []uint32{5, 7} { // the second is a transparent retry
					fields := worker.WantHeaders(stream, end)
					for i, f := range fields {
						if f.Name == "grpc-timeout" {
							fields[i].Value = "*"
						}
					}
					wantList(t, fields, request(hello, goes...))
					if stream == 5 {
						refuseByReset(worker, 5)
					}
				}
				reply(worker, 7)
				wantReply(caller, 1)
			})
		}
	}
}

// fieldsOf returns the value of a field in a list of names and values.
func fieldsOf(list []string, name string) string {
	return testkit.Value(testkit.Fields(list...), name)
}

func wantList(t *testing.T, got []testkit.Field, want []string) {
	t.Helper()
	list := testkit.Fields(want...)
	for i := range max(len(got), len(list)) {
		if i >= len(got) || i >= len(list) || got[i].Name != list[i].Name || got[i].Value != list[i].Value {
			t.Errorf("got  %v\nwant %v", got, list)
			return
		}
	}
}

// A retry waits its turn: it joins at the tail, not before calls that have had
// none.
func TestRetryJoinsTail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t, withRule(twice()))
		_, worker := g.pipeWorker("w1", 1)
		caller := g.pipeCaller()
		caller.AnyOrder()
		for stream := uint32(1); stream <= 5; stream += 2 {
			caller.WriteHeaders(stream, end, request(hello, "x-call", strconv.Itoa(int(stream)))...)
		}
		worker.WantHeaders(1, end)
		answerWhole("14")(worker, 1)
		for i, want := range []string{"3", "5", "1"} {
			stream := uint32(3 + 2*i)
			fields := worker.WantHeaders(stream, end)
			if got := testkit.Value(fields, "x-call"); got != want {
				t.Errorf("turn %d: call %s, want %s", i, got, want)
			}
			pass(firstBackOff)
			reply(worker, stream)
		}
		for stream := uint32(1); stream <= 5; stream += 2 {
			wantReply(caller, stream)
		}
	})
}

// What happens to a call between two attempts.
func TestPausing(t *testing.T) {
	scene := func(t *testing.T, unfinished bool, act func(g *rig, caller, worker *testkit.Peer)) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			g := newPipeRig(t, withRule(twice()), withQueue(1, 30*time.Second))
			_, worker := g.pipeWorker("w1", 1)
			caller := g.pipeCaller()
			caller.WriteHeaders(1, noEnd, request(hello, "grpc-timeout", "1S")...)
			worker.WantHeaders(1, noEnd)
			caller.WriteData(1, testkit.EndStream(!unfinished), []byte("one "))
			worker.WantDataBytes(1, []byte("one "), testkit.EndStream(!unfinished))
			if unfinished {
				worker.Skip(testkit.RST)
			}
			answerWhole("14", "grpc-retry-pushback-ms", "500")(worker, 1)
			synctest.Wait()
			g.wantInFlight(0)
			act(g, caller, worker)
		})
	}
	t.Run("the request goes on", func(t *testing.T) {
		scene(t, true, func(_ *rig, caller, worker *testkit.Peer) {
			caller.WriteData(1, end, []byte("two "))
			worker.WantHeaders(3, noEnd)
			worker.WantDataBytes(3, []byte("one two "), end)
			reply(worker, 3)
			wantReply(caller, 1)
		})
	})
	t.Run("the caller leaves", func(t *testing.T) {
		scene(t, false, func(_ *rig, caller, worker *testkit.Peer) {
			caller.WriteRST(1, http2.ErrCodeCancel)
			pass(time.Second)
			worker.WantIdle()
		})
	})
	t.Run("the relay closes", func(t *testing.T) {
		scene(t, false, func(g *rig, _, _ *testkit.Peer) { g.Close() })
	})
	t.Run("the deadline passes in the queue", func(t *testing.T) {
		scene(t, false, func(_ *rig, caller, worker *testkit.Peer) {
			caller.WriteHeaders(3, end, request(hello)...)
			worker.WantHeaders(3, end)
			wantStatus(caller, 1, "4", "cabrank: deadline exceeded in queue")
			reply(worker, 3)
			wantReply(caller, 3)
		})
	})
	t.Run("the queue is full", func(t *testing.T) {
		scene(t, false, func(g *rig, caller, worker *testkit.Peer) {
			caller.WriteHeaders(3, end, request(hello)...)
			caller.WriteHeaders(5, end, request(hello)...)
			worker.WantHeaders(3, end)
			g.wantWaiting(1)
			wantStatus(caller, 1, "8", "cabrank: queue full")
			caller.Skip(testkit.Headers, testkit.RST)
		})
	})
	t.Run("its bytes are shed", func(t *testing.T) {
		scene(t, false, func(g *rig, caller, worker *testkit.Peer) {
			g.stands[0].do(func() {
				st := g.stands[0]
				if st.someWaiting() == nil {
					t.Fatal("a call that pauses does not count as one that holds bytes")
				}
				st.someWaiting().fail(endedBuffer, st.Now())
			})
			wantStatus(caller, 1, "8", "cabrank: queue full")
			pass(time.Second)
			worker.WantIdle()
		})
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
