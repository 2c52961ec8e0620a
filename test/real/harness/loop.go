package harness

import (
	"context"
	"sync"
	"testing"

	"github.com/cabrank/cabrank/examples/go/workpb"
)

// Loop is callers that make one call after the other until they are told to stop.
//
// Life: StartLoop, Stop once. Concurrency: the tally may be read at any time.
type Loop struct {
	Tally

	callers sync.WaitGroup
	cancel  context.CancelFunc
}

// LoopCall is a call that a caller makes again and again.
type LoopCall func(context.Context, workpb.WorkClient) error

// StartLoop starts a caller for each call.
func StartLoop(t testing.TB, client workpb.WorkClient, calls []LoopCall) *Loop {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &Loop{cancel: cancel}
	for _, call := range calls {
		l.callers.Go(func() {
			for ctx.Err() == nil {
				l.Count(call(t.Context(), client))
			}
		})
	}
	return l
}

// Stop lets the calls in flight end and returns what failed, and how much was tried.
func (l *Loop) Stop() (failed map[string]int, calls int) {
	l.cancel()
	l.callers.Wait()
	answered, lost := l.Sums()
	return l.Failed(), answered + lost
}
