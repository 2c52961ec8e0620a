package relay

import (
	"strconv"
	"testing"
)

// R10: a call carries one hop more to its worker than it came with, whatever
// its form, in the place where the field was; an odd value counts as none.
func TestHopsAreCounted(t *testing.T) {
	g := newRig(t)
	_, accept := g.worker("w1", 1)
	caller := g.caller()
	worker := caller // until it is there
	for i, hops := range []struct{ came, goes string }{
		{"1", "2"}, {"8", "9"}, {"007", "8"}, {"", "1"}, {"many", "1"}, {"-9", "1"}, {"9x", "1"}, {"3, 5,4", "6"},
	} {
		stream := uint32(1 + 2*i)
		list := func(hops string) []string { return request(hello, "x-cabrank-hops", hops, "x-after", "1") }
		if i%2 == 1 {
			list = func(hops string) []string { return plain("GET", "/page", "x-cabrank-hops", hops, "x-after", "1") }
		}
		caller.WriteHeaders(stream, end, list(hops.came)...)
		if i == 0 {
			worker = accept()
		}
		worker.WantFields(stream, end, append(list(hops.goes), "x-forwarded-for", "127.0.0.1")...)
		worker.WriteHeaders(stream, end, append(responseHead(), "grpc-status", "0")...)
		caller.WantHeaders(stream, end)
	}
}

// R10: a relay whose worker calls it again and hands the field on, as in a cycle
// of services, refuses the call in the end and frees every slot.
func TestCallCycleEnds(t *testing.T) {
	g := newRig(t)
	const slots = 20 // enough for all turns, so that not the queue ends it
	_, accept := g.worker("w1", slots)
	caller := g.caller()
	caller.WriteHeaders(1, end, request(hello)...)
	worker := accept()
	for turn := 1; turn <= 9; turn++ {
		stream := uint32(2*turn - 1)
		hops := strconv.Itoa(turn)
		worker.WantFields(stream, end, append(request(hello), swapped(turn, hops)...)...)
		caller.WriteHeaders(stream+2, end, request(hello, "x-cabrank-hops", hops)...)
	}
	wantStatus(caller, 19, "9", "cabrank: call cycle")
	if n := g.counted("call_cycle"); n != 1 {
		t.Errorf("call_cycle counted %d times", n)
	}
	for stream := uint32(17); stream < 18; stream -= 2 { // each worker passes the failure on
		worker.WriteHeaders(stream, end, append(responseHead(), "grpc-status", "9")...)
		caller.WantHeaders(stream, end)
	}
}

// swapped is what follows the request in its n-th turn: a field that was there
// keeps its place.
func swapped(turn int, hops string) []string {
	if turn == 1 {
		return []string{"x-forwarded-for", "127.0.0.1", "x-cabrank-hops", hops}
	}
	return []string{"x-cabrank-hops", hops, "x-forwarded-for", "127.0.0.1"}
}

// With max_hops 0 the field is the callers' own.
func TestHopsNotCounted(t *testing.T) {
	g := newRig(t, func(o *Options) { o.MaxHops = 0 })
	_, accept := g.worker("w1", 1)
	caller := g.caller()
	caller.WriteHeaders(1, end, request(hello, "x-cabrank-hops", "99")...)
	worker := accept()
	worker.WantFields(1, end, request(hello, "x-cabrank-hops", "99", "x-forwarded-for", "127.0.0.1")...)
	reply(worker, 1)
	wantReply(caller, 1)
}

// Counting hops allocates nothing.
func TestHopsAllocateNothing(t *testing.T) {
	value := []byte("3, 5")
	if n := testing.AllocsPerRun(100, func() { _ = hopsOf(value) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
