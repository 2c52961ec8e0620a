//go:build real

package real_test

import (
	"context"
	"path/filepath"
	"sync"
	"testing"

	"google.golang.org/grpc/status"

	"github.com/cabrank/cabrank/examples/go/workpb"
)

// A rolling restart of workers in every language, threaded and asynchronous,
// under calls and streams that never pause: none of them fails, and every worker
// has been replaced at its end.
func TestRollsLoseNoCallInAnyLanguage(t *testing.T) {
	for _, lang := range langs {
		t.Run(lang+" worker", func(t *testing.T) {
			socket := filepath.Join(t.TempDir(), "control.sock")
			c := startLangCabrank(t, lang, "--workers", "2", "--min-ready", "2", "--transport", "unix", "--control", socket)
			op := newOperator(t, socket)
			load := startRollLoad(t, c.Addr)
			for range 2 {
				if err := op.run(2*langBound, "restart"); err != nil {
					t.Fatal(err)
				}
			}
			failed, calls := load.stop()
			if len(failed) > 0 || calls == 0 {
				t.Errorf("of %d calls and streams failed: %v", calls, failed)
			}
			state, err := op.status()
			if err != nil {
				t.Fatal(err)
			}
			if state.Generation != 3 || state.Ready != 2 {
				t.Errorf("generation %d, %d ready; want 3 and 2", state.Generation, state.Ready)
			}
			c.Stop()
		})
	}
}

// rollLoad are callers that go on until they are told to stop.
type rollLoad struct {
	callers sync.WaitGroup
	cancel  context.CancelFunc

	mu     sync.Mutex
	failed map[string]int
	calls  int
}

// startRollLoad starts three callers of short calls and one of streams.
func startRollLoad(t *testing.T, addr string) *rollLoad {
	t.Helper()
	client := workpb.NewWorkClient(dialLang(t, addr))
	return startLoadOf(t, client, []loadCall{callCPUOnce, callCPUOnce, callCPUOnce, streamOnce})
}

// loadCall is a call that a caller makes again and again.
type loadCall func(context.Context, workpb.WorkClient) error

// startLoadOf starts a caller for each call.
func startLoadOf(t *testing.T, client workpb.WorkClient, calls []loadCall) *rollLoad {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	load := &rollLoad{cancel: cancel, failed: make(map[string]int)}
	for _, call := range calls {
		load.callers.Go(func() {
			for ctx.Err() == nil {
				load.count(call(t.Context(), client))
			}
		})
	}
	return load
}

func (l *rollLoad) count(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls++
	if err != nil {
		l.failed[status.Code(err).String()+": "+status.Convert(err).Message()]++
	}
}

// stop returns what failed, and how much was tried.
func (l *rollLoad) stop() (failed map[string]int, calls int) {
	l.cancel()
	l.callers.Wait()
	return l.failed, l.calls
}
