package relay

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
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

// R12: binary metadata that is not base64 ends the call, and no worker sees it.
func TestBinaryMetadata(t *testing.T) {
	g := newRig(t)
	_, accept := g.worker("w1", 9)
	caller := g.caller()
	for i, value := range []string{"Y", "YQ,Y", "-_8=", "\xff"} {
		stream := uint32(2*i + 1)
		caller.WriteHeaders(stream, end, request(hello, "x-bin", value)...)
		caller.WantRST(stream, http2.ErrCodeProtocol)
	}
	caller.WriteHeaders(21, end, request(hello, "x-bin", "YQ==")...)
	worker := accept()
	worker.WantHeaders(1, end)
	// What a worker says is the caller's to judge.
	worker.WriteHeaders(1, end, append(responseHead(), "grpc-status", "0", "x-bin", "Y")...)
	caller.WantFields(21, end, append(responseHead(), "grpc-status", "0", "x-bin", "Y")...)
	caller.WriteHeaders(23, noEnd, request(hello)...)
	worker.WantHeaders(3, noEnd)
	caller.WriteHeaders(23, end, "x-bin", "Y")
	caller.WantRST(23, http2.ErrCodeProtocol)
	worker.WantRST(3, http2.ErrCodeCancel)
	g.wantInFlight(0)
}

// R12: binary values that were joined by commas, as gRPC allows (Custom-Metadata in
// gRPC over HTTP/2), reach the worker as a field each, for gRPC's C core does not
// split them; however many calls have them.
func TestJoinedBinaryMetadata(t *testing.T) {
	g := newRig(t)
	_, accept := g.worker("w1", 1)
	caller := g.caller()
	var worker *testkit.Peer
	for i := range 200 { // a connection may bring 100 malformed ones at once
		stream := uint32(2*i + 1)
		caller.WriteHeaders(stream, end, request(hello, "x-bin", "YQ==,YWI, YWJj", "x", "1,2", "y-bin", ",YQ")...)
		if worker == nil {
			worker = accept()
		}
		worker.WantFields(stream, end, forwarded(request(hello, "x-bin", "YQ==", "x-bin", "YWI", "x-bin", "YWJj", "x", "1,2",
			"y-bin", "", "y-bin", "YQ"))...)
		reply(worker, stream)
		wantReply(caller, stream)
	}
}

// R14: before a worker like Node's would end a connection for the requests on
// it that it found invalid, new calls move to a fresh one, however long ago that
// was; the old one finishes.
func TestComplaintsMoveNewCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		fresh, old := twoConns(g, 9)
		caller := g.pipeCaller()
		caller.WriteHeaders(1, noEnd, request(hello)...)
		old.WantHeaders(1, noEnd)
		stream := uint32(3)
		for i := range maxComplaints - 1 {
			caller.WriteHeaders(stream, end, request(hello, "x", fmt.Sprint(i))...)
			old.WantHeaders(stream, end)
			old.WriteRST(stream, http2.ErrCodeProtocol)
			caller.WantRST(stream, http2.ErrCodeProtocol)
			stream += 2
		}
		pass(time.Minute)
		caller.WriteHeaders(stream, end, request(hello)...)
		fresh.WantHeaders(1, end)
		reply(fresh, 1)
		wantReply(caller, stream)
		caller.WriteData(1, end, hi())
		old.WantDataBytes(1, hi(), end)
		reply(old, 1)
		wantReply(caller, 1)
		old.WantClosed()
	})
}

// RFC 9113 8.3.1: what is no URI ends at the door, each call for itself.
func TestTargetsAreRefused(t *testing.T) {
	g := newRig(t)
	_, accept := g.worker("w1", 1)
	caller := g.caller()
	stream := uint32(1)
	for _, list := range [][]string{
		request("/test Greeter/M"), request("/test.Greeter/\xff"), request("/test.Greeter/\u00e9"), request("test.Greeter/M"),
		request(hello + "#x"), {":method", "POST", ":scheme", "http", ":path", hello, ":authority", "me@greeter.test"},
	} {
		caller.WriteHeaders(stream, end, list...)
		caller.WantRST(stream, http2.ErrCodeProtocol)
		stream += 2
	}
	caller.WriteHeaders(stream, end, request(hello)...)
	worker := accept()
	worker.WantHeaders(1, end)
	reply(worker, 1)
	wantReply(caller, stream)
}

// RFC 9113 8.5, 8.3.1: a request for a tunnel is answered here, and one with a host that
// is not :authority is reset; no worker sees either.
func TestTunnelsAndOtherHosts(t *testing.T) {
	g := newRig(t)
	_, accept := g.worker("w1", 1)
	caller := g.caller()
	const body = "cabrank: CONNECT is not served\n"
	caller.WriteHeaders(1, noEnd, ":method", "CONNECT", ":authority", "db.test:5432")
	caller.WantFields(1, noEnd, ":status", "501", "content-type", "text/plain; charset=utf-8", "content-length", fmt.Sprint(len(body)))
	caller.WantDataBytes(1, []byte(body), end)
	caller.WantRST(1, http2.ErrCodeNo)
	caller.WriteHeaders(3, end, ":method", "CONNECT", ":authority", "db.test:5432", "content-type", "application/grpc")
	wantStatus(caller, 3, "12", body[:len(body)-1])
	caller.WriteHeaders(5, end, request(hello, "host", "other.test")...)
	caller.WantRST(5, http2.ErrCodeProtocol)
	caller.WriteHeaders(7, end, request(hello, "host", "greeter.test", "host", "greeter.test")...)
	caller.WantRST(7, http2.ErrCodeProtocol)
	caller.WriteHeaders(9, end, request(hello, "host", "Greeter.test:80")...)
	worker := accept()
	worker.WantFields(1, end, forwarded(request(hello, "host", "Greeter.test:80"))...)
	reply(worker, 1)
	wantReply(caller, 9)
	if n := g.counted("connect"); n != 2 {
		t.Errorf("%d counted", n)
	}
}
