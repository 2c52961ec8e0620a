package harness

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/testkit"
)

const (
	stormRate    = 500 // cancels a second
	stormConns   = 10  // connections that they come from
	stormCallers = 8   // that call one after the other beside it
	stormStreams = 8   // long streams beside it
)

// CancelStorm has callers cancel 500 calls a second on a Node worker, which
// would end any connection that brings more than 1,000 cancels and 33 a second,
// beside others that call and stream. None of them fails, and no GOAWAY is seen
// on either side of cabrank (R14). It is the wire that is counted.
func CancelStorm(t testing.TB, lasts time.Duration) {
	t.Helper()
	worker := Tap(t, StartLangWorker(t, "node"))
	c := StartCabrank(t, "--upstream", worker.Addr, "--slots", "200")
	c.WaitReady(LangBound)
	door := Tap(t, c.Addr)
	ctx, end := context.WithTimeout(t.Context(), lasts)
	defer end()
	began := time.Now()
	var calm []*Loop
	for range stormCallers {
		calm = append(calm, StartLoop(t, 1, Working(workpb.NewWorkClient(Dial(t, door.Addr)), CallCPUOnce)))
	}
	for range stormStreams { // so that connections that rest have a long call
		calm = append(calm, StartLoop(t, 1, Working(workpb.NewWorkClient(Dial(t, door.Addr)), StreamOnce)))
	}
	storm(ctx, t, door.Addr)
	beside := 0
	for _, loop := range calm {
		failed, calls := loop.Stop()
		if beside += calls; len(failed) > 0 {
			t.Errorf("calls beside the cancels failed: %v", failed)
		}
	}
	took := time.Since(began)

	t.Logf("%d cancels in %v reached the worker over %d connections; beside them %d calls",
		worker.Resets(), took, worker.Opened(), beside)
	if n := worker.GoAways(); n > 0 {
		t.Errorf("the worker said GOAWAY %d times", n)
	}
	if n := door.GoAways(); n > 0 {
		t.Errorf("callers saw GOAWAY %d times", n)
	}
	faults := worker.overdrawn()
	testkit.Want(t, len(faults) == 0, "more resets on one connection than 800 and 25 a second: %v", faults)
	if n := worker.Resets(); n < 1000+33*int(took.Seconds()) {
		t.Errorf("only %d cancels in %v: one connection would have stood them, so the test proves nothing", n, took)
	}
	// Each connection takes 800 resets, but for the last ones; the first of all
	// is the one by which cabrank watches the endpoint.
	if n, most := worker.Opened(), 2+stormConns+worker.Resets()/400; n > most {
		t.Errorf("%d connections to the worker, want at most %d", n, most)
	}
	c.Stop()
}

// storm cancels calls that have begun on the worker, at the rate of the clock:
// what a busy machine has missed is made up for.
func storm(ctx context.Context, t testing.TB, addr string) {
	t.Helper()
	var clients []workpb.WorkClient
	for range stormConns {
		clients = append(clients, workpb.NewWorkClient(Dial(t, addr)))
	}
	begun := make(chan struct{}, stormRate/2) // bounds the calls at a time
	var calls sync.WaitGroup
	defer calls.Wait()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	start := time.Now()
	for n := 0; ctx.Err() == nil; {
		<-tick.C
		for due := int(time.Since(start).Seconds() * stormRate); n < due && ctx.Err() == nil; n++ {
			begun <- struct{}{}
			client := clients[n%stormConns]
			calls.Go(func() {
				err := CancelOnce(t.Context(), client)
				testkit.Want(t, err == nil, "a cancelled call: %v", err)
				<-begun
			})
		}
	}
}
