package harness

import (
	"context"
	"sync"
	"testing"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/testkit"
)

// Loop is callers that make one call after the other until they are told to stop.
//
// Life: StartLoop, Stop or WantNoFailure once; the end of the test stops it, too.
// Concurrency: the tally may be read at any time.
type Loop struct {
	Tally

	t       testing.TB
	callers sync.WaitGroup
	cancel  context.CancelFunc
}

// LoopCall is a call that a caller makes again and again.
type LoopCall func(context.Context) error

// StartLoop starts so many callers for each call. Its context is that of the test: a call
// that has begun when the loop is stopped goes on to its end.
func StartLoop(t testing.TB, callers int, calls ...LoopCall) *Loop {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &Loop{t: t, cancel: cancel}
	t.Cleanup(func() { l.Stop() })
	for _, call := range calls {
		for range callers {
			l.callers.Go(func() {
				for ctx.Err() == nil {
					l.Count(call(t.Context()))
				}
			})
		}
	}
	return l
}

// Working is a call by a client of Work.
func Working(client workpb.WorkClient, call func(context.Context, workpb.WorkClient) error) LoopCall {
	return func(ctx context.Context) error { return call(ctx, client) }
}

// WaitMore waits until so many more calls have been answered.
func (l *Loop) WaitMore(calls int) {
	l.t.Helper()
	before, _ := l.Sums()
	testkit.Eventually(l.t, Patience, "more calls", func() bool { now, _ := l.Sums(); return now >= before+calls })
}

// Stop lets the calls in flight end and returns what failed, and how much was tried.
func (l *Loop) Stop() (failed map[string]int, calls int) {
	l.cancel()
	l.callers.Wait()
	answered, lost := l.Sums()
	return l.Failed(), answered + lost
}

// WantNoFailure is Stop that holds that calls were made, none of which has failed.
func (l *Loop) WantNoFailure() {
	l.t.Helper()
	failed, calls := l.Stop()
	testkit.Want(l.t, len(failed) == 0 && calls != 0, "of %d calls failed: %v", calls, failed)
}
