package relay

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/testkit"
)

// of returns what is known of one method.
func (s Stats) of(t *testing.T, name string) MethodStats {
	t.Helper()
	for _, m := range s.Methods {
		if m.Method == name {
			return m
		}
	}
	t.Fatalf("no counters of %s", name)
	return MethodStats{}
}

// A call takes as long as it was there, also one whose headers end its connection.
func TestSecondsOfACallThatHasNotBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		caller := g.pipeCaller()
		caller.Skip(testkit.Headers, testkit.RST)
		pass(time.Hour)
		large := request(hello, "x-large", strings.Repeat("v", 17<<10))
		calls := 0
		for g.Stats().Partings["caller"]["large_header_list"] == 0 {
			caller.WriteHeaders(uint32(2*calls+1), end, large...)
			calls++
			synctest.Wait()
		}
		caller.WantGoAway(http2.ErrCodeEnhanceYourCalm)
		of := g.Stats().of(t, otherMethod)
		if n := of.Codes["RESOURCE_EXHAUSTED"] + of.Codes["CANCELLED"]; int(n) != calls || of.Codes["CANCELLED"] != 1 {
			t.Errorf("%d calls are recorded as %v", calls, of.Codes)
		}
		if of.Seconds.Sum > 1 {
			t.Errorf("%d calls that were refused at once took %.0f s in all", calls, of.Seconds.Sum)
		}
	})
}

// Every finished call is counted once, by its method and by the code that its
// caller got; the shards' shares are added up.
func TestStats(t *testing.T) {
	g := newRig(t, func(o *Options) { o.Shards = 2 })
	_, accept := g.worker("w1", 9)
	for range 2 { // one caller on each shard
		caller := g.caller()
		caller.WriteHeaders(1, end, request(hello)...)
		worker := accept()
		worker.WantHeaders(1, end)
		reply(worker, 1)
		wantReply(caller, 1)
		caller.WriteHeaders(3, end, request(hello)...)
		worker.WantHeaders(3, end)
		worker.WriteHeaders(3, end, append(responseHead(), "grpc-status", "5")...)
		caller.WantHeaders(3, end)
		caller.WriteHeaders(5, end, request(hello)...)
		worker.WantHeaders(5, end)
		worker.WriteRST(5, http2.ErrCodeEnhanceYourCalm)
		caller.WantRST(5, http2.ErrCodeEnhanceYourCalm)
		caller.WriteHeaders(7, end, request(hello)...)
		worker.WantHeaders(7, end)
		caller.WriteRST(7, http2.ErrCodeCancel)
		worker.WantRST(7, http2.ErrCodeCancel)
		caller.WriteHeaders(9, end, plain("GET", "/page")...)
		worker.WantHeaders(9, end)
		worker.WriteHeaders(9, end, ":status", "404")
		caller.WantHeaders(9, end)
		caller.WriteHeaders(11, end, plain("GET", "/page")...)
		worker.WantHeaders(11, end)
		worker.WriteHeaders(11, end, ":status", "799")
		caller.WantHeaders(11, end)
		caller.WriteHeaders(13, end, request(hello)...)
		worker.WantHeaders(13, end)
		worker.WriteHeaders(13, end, append(responseHead(), "grpc-status", "what?")...)
		caller.WantHeaders(13, end)
		testkit.Eventually(t, soon, "the calls to be counted", func() bool { return g.running() == 0 })
	}
	stats := g.Stats()
	want := map[string]uint64{"OK": 2, "NOT_FOUND": 2, "RESOURCE_EXHAUSTED": 2, "CANCELLED": 2, "UNKNOWN": 2}
	if got := stats.of(t, hello).Codes; !maps.Equal(got, want) {
		t.Errorf("%s: got %v, want %v", hello, got, want)
	}
	want = map[string]uint64{"404": 2, otherMethod: 2}
	if got := stats.of(t, otherMethod).Codes; !maps.Equal(got, want) {
		t.Errorf("other: got %v, want %v", got, want)
	}
	for _, m := range stats.Methods {
		var codes, seconds, waits uint64
		for _, n := range m.Codes {
			codes += n
		}
		for i := range m.Seconds.Counts {
			seconds += m.Seconds.Counts[i]
			waits += m.Wait.Counts[i]
		}
		if codes != seconds || codes != waits || len(m.Seconds.Counts) != len(m.Seconds.Bounds)+1 {
			t.Errorf("%s: %d calls by code, %d by time, %d by wait", m.Method, codes, seconds, waits)
		}
	}
}

// The method label is bounded: 200 that a worker has answered otherwise than
// UNIMPLEMENTED, then "other".
func TestMethodsAreBounded(t *testing.T) {
	g := newRig(t)
	_, accept := g.worker("w1", 1)
	caller := g.caller()
	var worker *testkit.Peer
	call := func(n uint32, path, code string) {
		stream := 1 + 2*n
		caller.WriteHeaders(stream, end, request(path)...)
		if worker == nil {
			worker = accept()
		}
		worker.WantHeaders(stream, end)
		worker.WriteHeaders(stream, end, append(responseHead(), "grpc-status", code)...)
		caller.WantHeaders(stream, end)
	}
	n := uint32(0)
	for range 300 { // whoever calls what nobody has leaves no name
		call(n, fmt.Sprintf("/test.Nobody/M%d", n), "12")
		n++
	}
	call(n, "/test.Greeter/"+strings.Repeat("x", maxMethodName), "0") // a worker that answers whatever it is asked
	n++
	for i := range maxUnproven + 10 { // some say that before they look at the method
		call(n, fmt.Sprintf("/test.Greeter/M%d", i), "3")
		n++
	}
	for i := range maxMethods - maxUnproven + 10 {
		call(n, fmt.Sprintf("/test.Greeter/P%d", i), "0")
		n++
	}
	call(n, "/test.Greeter/M7", "12") // known by now
	testkit.Eventually(t, soon, "the calls to be counted", func() bool { return g.running() == 0 })
	stats := g.Stats()
	if len(stats.Methods) != maxMethods+1 {
		t.Errorf("%d methods, want %d and other", len(stats.Methods), maxMethods)
	}
	if got := stats.of(t, otherMethod).Codes; got["UNIMPLEMENTED"] != 300 || got["INVALID_ARGUMENT"] != 10 || got["OK"] != 11 {
		t.Errorf("other: %v", got)
	}
	if got := stats.of(t, "/test.Greeter/M7").Codes; got["UNIMPLEMENTED"] != 1 || got["INVALID_ARGUMENT"] != 1 {
		t.Errorf("M7: %v", got)
	}
}

// A refusal is not an answer: what a full worker refused and nobody took is not
// learned as a method.
func TestRefusalTeachesNoMethod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t, withQueue(9, 100*time.Millisecond))
		e, worker := g.pipeWorker("w1", 1)
		caller := g.pipeCaller()
		caller.WriteHeaders(1, end, request("/test.Nobody/Nothing")...)
		worker.WantHeaders(1, end)
		g.Down(e)
		refuseWhole(rubyBusy)(worker, 1)
		wantStatus(caller, 1, "8", rubyBusy)
		synctest.Wait()
		if got := g.Stats().of(t, otherMethod).Codes["RESOURCE_EXHAUSTED"]; got != 1 || len(g.Stats().Methods) != 1 {
			t.Errorf("learned: %v", g.Stats().Methods)
		}
	})
}

// A bound belongs to its bucket.
func TestHistogramBounds(t *testing.T) {
	table := newStatsTable()
	var h histogram
	for i, limit := range table.limits {
		h.observe(limit, &table.limits)
		h.observe(limit+1, &table.limits)
		if h.counts[i] == 0 || h.counts[i+1] == 0 {
			t.Errorf("bound %v: %v", limit, h.counts)
		}
	}
	if n := h.counts[buckets-1]; n != 1 {
		t.Errorf("above the last bound: %d", n)
	}
}
