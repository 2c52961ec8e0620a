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

// A poison is a header list, behind the usual fields, for which some worker has
// ended its connection, with everybody's calls on it.
type poison struct {
	name        string
	connections int
	fields      []string
}

func poisons() []poison {
	return []poison{
		// A C core 1.51 ends it at the first of these.
		{"large list", 1, []string{"x-large", strings.Repeat("v", 20_000)}},
		{"many fields", 1, strings.Split(strings.Repeat("x,v,", 500)+"x,v", ",")},
		{"not base64", 1, []string{"x-bin", "Y"}},
		{"list of base64", 1, []string{"x-bin", "YQ,YQ"}},
		// Node at the 1,000th request that it finds invalid.
		{"host with space", 1100/poisonCalls + 1, []string{"host", "a b"}},
	}
}

// R12: whatever a caller puts into its header lists, nobody else's call fails
// for it, and no worker ends a connection.
func TestNoCallerEndsAWorkersConnection(t *testing.T) {
	for _, lang := range harness.Langs() {
		t.Run(lang+" worker", func(t *testing.T) {
			worker := harness.Tap(t, harness.StartLangWorker(t, lang, "RAILS_MAX_THREADS=100"))
			c := harness.StartCabrank(t, "--upstream", worker.Addr, "--slots", "20")
			c.WaitReady(harness.LangBound)
			var calm []*harness.Loop
			for range 4 {
				calm = append(calm, harness.StartLoop(t, workpb.NewWorkClient(harness.Dial(t, c.Addr)), []harness.LoopCall{ioOnce}))
			}
			for _, p := range poisons() {
				p.drink(t, c.Addr)
			}
			for _, loop := range calm {
				if failed, _ := loop.Stop(); len(failed) > 0 {
					t.Errorf("calls beside it failed: %v", failed)
				}
			}
			if n := worker.GoAways(); n > 0 {
				t.Errorf("the worker said GOAWAY %d times", n)
			}
			c.Stop()
		})
	}
}

func ioOnce(ctx context.Context, client workpb.WorkClient) error {
	ctx, cancel := context.WithTimeout(ctx, harness.CallBound)
	defer cancel()
	_, err := client.Io(ctx, &workpb.IoRequest{Millis: 20})
	return err
}

// drink makes calls with the fields of p.
func (p poison) drink(t *testing.T, addr string) {
	t.Helper()
	began := time.Now()
	for range p.connections {
		caller := testkit.DialCaller(t, addr)
		caller.Greet()
		caller.Skip(testkit.Settings, testkit.WindowUpdate)
		caller.AnyOrder()
		list := append([]string{
			":method", "POST", ":scheme", "http", ":path", workpb.Work_Io_FullMethodName,
			"content-type", "application/grpc", "te", "trailers",
		}, p.fields...)
		caller.Batch(func() {
			for i := range poisonCalls {
				caller.WriteHeaders(uint32(2*i+1), testkit.NoEnd, list...)
				caller.WriteData(uint32(2*i+1), testkit.End, make([]byte, 5))
			}
		})
		for ended := 0; ended < poisonCalls; {
			if f := caller.WantFrame(); f.End || f.Kind == testkit.RST && f.Code != http2.ErrCodeNo {
				ended++
			}
		}
		caller.Close()
	}
	t.Logf("%s: %d calls in %v", p.name, p.connections*poisonCalls, time.Since(began))
}
