package relay

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/testkit"
)

// listLimit is what servers on gRPC's C core announce.
var listLimit = http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: 8 << 10}

// requestOf is a call whose header list has this size, as HTTP/2 counts it.
func requestOf(size int) []string {
	list := request(hello, "x-large", "")
	for i := 0; i < len(list); i += 2 {
		size -= len(list[i]) + len(list[i+1]) + 32
	}
	list[len(list)-1] = strings.Repeat("v", size)
	return list
}

// R12: a call whose header list is larger than its worker takes never gets
// there: one kind of worker ends the connection for it, with everybody's calls.
// It ends alike when the worker's limit was known and when it was not.
func TestListsLargerThanTheWorkerTakes(t *testing.T) {
	g := newRig(t)
	_, accept := g.worker("w1", 9, listLimit)
	caller := g.caller()
	caller.AnyOrder()
	caller.Batch(func() { // before the worker has greeted
		caller.WriteHeaders(1, end, requestOf(9000)...)
		caller.WriteHeaders(3, end, request(hello)...)
	})
	worker := accept()
	worker.WantHeaders(3, end)
	wantStatus(caller, 1, "8", "cabrank: headers too large")
	caller.WriteHeaders(5, noEnd, requestOf(9000)...) // and after that
	wantStatus(caller, 5, "8", "cabrank: headers too large")
	caller.WriteHeaders(7, end, requestOf(8<<10+1)...)
	wantStatus(caller, 7, "8", "cabrank: headers too large")
	caller.WriteHeaders(9, end, requestOf(8<<10-maxAdded-len("127.0.0.1"))...)
	worker.WantHeaders(5, end)
	reply(worker, 3)
	reply(worker, 5)
	wantReply(caller, 3)
	wantReply(caller, 9)
	if n := g.counted("headers_too_large"); n != 3 {
		t.Errorf("headers_too_large: got %d", n)
	}
	g.wantInFlight(0)
}

// A call that the worker has not seen counts for nothing there: it is neither one that
// has been served nor one that has failed.
func TestLargeListsAreNotTheWorkers(t *testing.T) {
	for name, onCancel := range map[string]rank.OnCancel{"free": rank.Free, "hold": rank.Hold, "finish": rank.Finish} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, func(o *Options) { o.OnCancel = onCancel })
			e, accept := g.worker("w1", 99, listLimit)
			caller := g.caller()
			caller.AnyOrder()
			for stream := uint32(1); stream < 80; stream += 2 { // before the worker has greeted, and after
				caller.WriteHeaders(stream, end, requestOf(9000)...)
			}
			accept()
			for stream := uint32(1); stream < 80; stream += 2 {
				wantStatus(caller, stream, "8", "cabrank: headers too large")
			}
			if a := g.Activity(e); a.Served != 0 {
				t.Errorf("%d calls have been served", a.Served)
			}
			if pace := g.Rank().Endpoints[0].Pace; pace > 1 {
				t.Errorf("the worker counts as %v times slower than usual", pace)
			}
			g.wantInFlight(0)
		})
	}
}

// R12: the length of a list as it leaves, cabrank's own fields included, is
// never more than what it is taken for.
func TestListsAreNotTakenForShorter(t *testing.T) {
	g := newRig(t, func(o *Options) { o.CallTimeout = time.Hour })
	_, accept := g.worker("w1", 9)
	caller := g.caller()
	worker := (*testkit.Peer)(nil)
	for i, more := range [][]string{
		nil, {"x-forwarded-for", "1.2.3.4"}, {"x-forwarded-for", ""}, {"grpc-timeout", "1H"}, {"grpc-timeout", "1H", "x-forwarded-for", "x"},
	} {
		list := request(hello, more...)
		caller.WriteHeaders(uint32(2*i+1), end, list...)
		if worker == nil {
			worker = accept()
		}
		taken := size(list) + maxAdded + len("127.0.0.1")
		f := worker.WantFrame()
		sent := 0
		for _, field := range f.Fields {
			sent += len(field.Name) + len(field.Value) + 32
		}
		if sent > taken {
			t.Errorf("with %q: %d octets are sent, taken for %d", more, sent, taken)
		}
		reply(worker, f.Stream)
		wantReply(caller, uint32(2*i+1))
	}
}

func size(list []string) (n int) {
	for i := 0; i < len(list); i += 2 {
		n += len(list[i]) + len(list[i+1]) + 32
	}
	return n
}
