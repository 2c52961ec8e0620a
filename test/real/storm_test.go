//go:build real || soak

package real_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cabrank/cabrank/examples/go/workpb"
)

const (
	stormRate    = 500 // cancels a second
	stormConns   = 10  // connections that they come from
	stormCallers = 8   // that call one after the other beside it
	stormStreams = 8   // long streams beside it
)

// calmCalls are the calls beside a storm.
type calmCalls struct {
	done atomic.Int64

	mu     sync.Mutex
	failed map[string]int // by status
}

func (c *calmCalls) count(err error) {
	if err == nil {
		c.done.Add(1)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed[status.Code(err).String()+": "+status.Convert(err).Message()]++
}

// cancelStorm has callers cancel 500 calls a second on a Node worker, which
// would end any connection that brings more than 1,000 cancels and 33 a second,
// beside others that call and stream. None of them fails, and no GOAWAY is seen
// on either side of cabrank (R14). It is the wire that is counted.
func cancelStorm(t *testing.T, lasts time.Duration) {
	t.Helper()
	worker := tap(t, startLangWorker(t, "node"))
	c := StartCabrank(t, "--upstream", worker.addr, "--slots", "200")
	c.WaitReady(langBound)
	door := tap(t, c.Addr)
	calm := &calmCalls{failed: map[string]int{}}

	ctx, end := context.WithTimeout(t.Context(), lasts)
	defer end()
	began := time.Now()
	var running sync.WaitGroup
	for range stormCallers {
		client := workpb.NewWorkClient(dialLang(t, door.addr))
		running.Go(func() {
			for ctx.Err() == nil {
				calm.count(callCPUOnce(t.Context(), client))
			}
		})
	}
	for range stormStreams {
		client := workpb.NewWorkClient(dialLang(t, door.addr))
		running.Go(func() {
			for ctx.Err() == nil { // so that connections that rest have a long call
				calm.count(streamOnce(t.Context(), client))
			}
		})
	}
	storm(ctx, t, door.addr)
	running.Wait()
	took := time.Since(began)

	t.Logf("%d cancels in %v reached the worker over %d connections; beside them %d calls",
		worker.resets(), took, worker.opened(), calm.done.Load())
	if len(calm.failed) > 0 {
		t.Errorf("calls beside the cancels failed: %v", calm.failed)
	}
	if n := worker.goAways(); n > 0 {
		t.Errorf("the worker said GOAWAY %d times", n)
	}
	if n := door.goAways(); n > 0 {
		t.Errorf("callers saw GOAWAY %d times", n)
	}
	if faults := worker.overdrawn(); len(faults) > 0 {
		t.Errorf("more resets on one connection than 800 and 25 a second: %v", faults)
	}
	if n := worker.resets(); n < 1000+33*int(took.Seconds()) {
		t.Errorf("only %d cancels in %v: one connection would have stood them, so the test proves nothing", n, took)
	}
	// Each connection takes 800 resets, but for the last ones; the first of all
	// is the one by which cabrank watches the endpoint.
	if n, most := worker.opened(), 2+stormConns+worker.resets()/400; n > most {
		t.Errorf("%d connections to the worker, want at most %d", n, most)
	}
	c.Stop()
}

// callCPUOnce makes a call of a millisecond.
func callCPUOnce(ctx context.Context, client workpb.WorkClient) error {
	ctx, cancel := context.WithTimeout(ctx, callBound)
	defer cancel()
	reply, err := client.Cpu(ctx, &workpb.CpuRequest{N: 10})
	if err == nil && reply.GetValue() != 55 {
		return status.Errorf(codes.DataLoss, "fib(10) is %d", reply.GetValue())
	}
	return err
}

// streamOnce takes a stream of two seconds.
func streamOnce(ctx context.Context, client workpb.WorkClient) error {
	ctx, cancel := context.WithTimeout(ctx, callBound)
	defer cancel()
	const numbers = 21
	stream, err := client.Count(ctx, &workpb.CountRequest{To: numbers, PauseMillis: 100})
	if err != nil {
		return err
	}
	for n := uint32(1); n <= numbers; n++ {
		number, err := stream.Recv()
		if err != nil {
			return err
		}
		if number.GetValue() != n {
			return status.Errorf(codes.DataLoss, "number %d is %d", n, number.GetValue())
		}
	}
	return nil
}

// storm cancels calls that have begun on the worker, at the rate of the clock:
// what a busy machine has missed is made up for.
func storm(ctx context.Context, t *testing.T, addr string) {
	t.Helper()
	var clients []workpb.WorkClient
	for range stormConns {
		clients = append(clients, workpb.NewWorkClient(dialLang(t, addr)))
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
				if err := cancelOnce(t.Context(), client); err != nil {
					t.Errorf("a cancelled call: %v", err)
				}
				<-begun
			})
		}
	}
}

// cancelOnce leaves a stream after its first message.
func cancelOnce(ctx context.Context, client workpb.WorkClient) error {
	ctx, cancel := context.WithTimeout(ctx, callBound)
	defer cancel()
	stream, err := client.Count(ctx, &workpb.CountRequest{To: 1000, PauseMillis: 1000}, grpc.WaitForReady(true))
	if err != nil {
		return err
	}
	if _, err := stream.Recv(); err != nil {
		return err
	}
	cancel()
	if _, err := stream.Recv(); status.Code(err) != codes.Canceled {
		return fmt.Errorf("after the cancel: %w", err)
	}
	return nil
}
