//go:build real || soak

package attack_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// poisonCalls is how many calls one connection brings: cabrank ends it at the
// 100th that is malformed.
const poisonCalls = 60

// A poison is a request that HTTP/2 allows, or nearly, and for which some worker has ended
// its connection, or might, with everybody's calls on it.
type poison struct {
	name        string
	connections int                                       // 0: one
	list        []string                                  // nil: the usual one
	send        func(caller *testkit.Peer, stream uint32) // behind HEADERS; nil: an empty message
}

// killers are those for which some worker was seen to end its connection.
func killers() []poison {
	return []poison{
		// A C core 1.51 ends it at the first of these.
		{name: "large list", list: with("x-large", strings.Repeat("v", 20_000))},
		{name: "many fields", list: with(strings.Split(strings.Repeat("x,v,", 500)+"x,v", ",")...)},
		{name: "not base64", list: with("x-bin", "Y")},
		{name: "list of base64", list: with("x-bin", "YQ,YQ")},
		// Node at the 1,000th request that it finds invalid.
		{name: "host with space", connections: 1100/poisonCalls + 1, list: with("host", "a b")},
		// grpc-go at the first.
		{name: "trailers", send: trailers("x-checksum", "1")},
	}
}

// with is the usual header list of a call, with fields behind it.
func with(fields ...string) []string {
	return append([]string{
		":method", "POST", ":scheme", "http", ":path", workpb.Work_Io_FullMethodName, ":authority", "work.test",
		"content-type", "application/grpc", "te", "trailers",
	}, fields...)
}

// trailers ends the request with a second header list.
func trailers(fields ...string) func(*testkit.Peer, uint32) {
	return func(caller *testkit.Peer, stream uint32) {
		caller.WriteData(stream, testkit.NoEnd, make([]byte, 5))
		caller.WriteHeaders(stream, testkit.End, fields...)
	}
}

// R12: whatever a caller says, nobody else's call fails for it, and no worker ends a
// connection.
func TestNoCallerEndsAWorkersConnection(t *testing.T) {
	for _, lang := range harness.Langs() {
		t.Run(lang+" worker", func(t *testing.T) { poisonWorker(t, lang, killers()) })
	}
}

// poisonWorker has a worker meet all of them beside other calls.
func poisonWorker(t *testing.T, lang string, poisons []poison) {
	t.Helper()
	worker := harness.Tap(t, harness.StartLangWorker(t, lang, "RAILS_MAX_THREADS=100"))
	c := harness.StartCabrank(t, "--upstream", worker.Addr, "--slots", "20")
	c.WaitReady(harness.LangBound)
	for _, p := range poisons {
		said := worker.GoAways()
		loop := harness.StartLoop(t, 2, harness.Working(workpb.NewWorkClient(harness.Dial(t, c.Addr)), ioOnce))
		p.drink(t, c.Addr)
		failed, _ := loop.Stop()
		testkit.Want(t, len(failed) == 0, "%s: calls beside it failed: %v", p.name, failed)
		n := worker.GoAways() - said
		testkit.Want(t, n == 0, "%s: the worker said GOAWAY %d times", p.name, n)
	}
}

func ioOnce(ctx context.Context, client workpb.WorkClient) error {
	ctx, cancel := context.WithTimeout(ctx, harness.CallBound)
	defer cancel()
	_, err := client.Io(ctx, &workpb.IoRequest{Millis: 20})
	return err
}

// drink makes calls with the poison.
func (p poison) drink(t *testing.T, addr string) {
	t.Helper()
	began := time.Now()
	for range max(p.connections, 1) {
		caller := testkit.DialCaller(t, addr)
		caller.Greet()
		caller.Skip(testkit.Settings, testkit.WindowUpdate)
		caller.AnyOrder()
		list := p.list
		if list == nil {
			list = with()
		}
		caller.Batch(func() {
			for i := range poisonCalls {
				stream := uint32(2*i + 1)
				caller.WriteHeaders(stream, testkit.NoEnd, list...)
				if p.send != nil {
					p.send(caller, stream)
				} else {
					caller.WriteData(stream, testkit.End, make([]byte, 5))
				}
			}
		})
		over := map[uint32]bool{} // by its stream; a call may end twice, by an answer and a reset
		for len(over) < poisonCalls {
			f := caller.WantFrame()
			if f.Kind == testkit.GoAway {
				break
			}
			if f.End || f.Kind == testkit.RST && f.Code != http2.ErrCodeNo {
				over[f.Stream] = true
			}
		}
		caller.Close()
	}
	t.Logf("%s: %d calls in %v", p.name, max(p.connections, 1)*poisonCalls, time.Since(began))
}
