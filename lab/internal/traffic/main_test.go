package traffic

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// No test leaves a goroutine behind.
func TestMain(m *testing.M) { testkit.VerifyMain(m) }

// clientFunc is a client without a network.
type clientFunc func(ctx context.Context, call Call) Answer

func (f clientFunc) Call(ctx context.Context, call Call) Answer { return f(ctx, call) }

// napper waits in virtual time.
type napper struct{}

func (napper) Sleep(d time.Duration) error {
	<-time.After(d)
	return nil
}

// after waits in virtual time, or until the call is given up.
func after(ctx context.Context, d time.Duration) Answer {
	select {
	case <-time.After(d):
		return Answer{}
	case <-ctx.Done():
		return Answer{Code: 1, Message: "cancelled"}
	}
}

// takes is a client whose calls all take the same time.
func takes(d time.Duration) Client {
	return clientFunc(func(ctx context.Context, _ Call) Answer { return after(ctx, d) })
}

func plan(t testing.TB, o Options) Plan {
	t.Helper()
	p, err := o.Plan()
	testkit.Must(t, err)
	return p
}

// run runs a load in virtual time.
func run(t *testing.T, o Options, c Client) (r *Record) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { r = runIn(t.Context(), t, plan(t, o), c) })
	return r
}

// runIn runs a load inside a bubble.
func runIn(ctx context.Context, t *testing.T, p Plan, c Client) *Record {
	t.Helper()
	l := New(p, c)
	l.rest = napper{}
	r, err := l.Run(ctx)
	testkit.Must(t, err)
	err = r.check()
	testkit.Want(t, err == nil, "%v", err)
	return r
}

// inParts runs a load in three parts, one behind the other, and returns what they have
// recorded together. Records pass a file, as between processes.
func inParts(t *testing.T, o Options, c Client) (sum *Record) {
	t.Helper()
	for part := range 3 {
		p := plan(t, o)
		p.Part, p.Parts = part, 3
		read := &Record{}
		synctest.Test(t, func(t *testing.T) {
			testkit.Must(t, json.Unmarshal([]byte(asJSON(t, runIn(t.Context(), t, p, c))), read))
		})
		if sum == nil {
			sum = read
		} else if err := sum.Merge(read); err != nil {
			t.Fatal(err)
		}
	}
	return sum
}

// numbered is a client that keeps when each call was due, by its number.
type numbered struct {
	Client

	mu   sync.Mutex
	due  map[uint64]time.Time
	more int // calls with a number that there was
}

func number(c Client) *numbered { return &numbered{Client: c, due: map[uint64]time.Time{}} }

func (n *numbered) Call(ctx context.Context, call Call) Answer {
	n.mu.Lock()
	if _, is := n.due[call.Number]; is {
		n.more++
	}
	n.due[call.Number] = call.Due
	n.mu.Unlock()
	return n.Client.Call(ctx, call)
}

// paused is a client that stands still in the eleventh second, and is quick otherwise.
func paused() Client {
	var began time.Time
	return clientFunc(func(ctx context.Context, call Call) Answer {
		if began.IsZero() {
			began = call.Due // the first call is due at the start
		}
		if at := time.Since(began); at >= 10*time.Second && at < 11*time.Second {
			after(ctx, 11*time.Second-at)
		}
		return after(ctx, time.Millisecond)
	})
}

// begun is a load that runs inside a bubble; ended waits for its end.
func begun(t *testing.T, o Options, c Client) (l *Load, ended func()) {
	t.Helper()
	l = New(plan(t, o), c)
	l.rest = napper{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.Run(t.Context())
	}()
	return l, func() { <-done }
}

// near fails unless got is within a share of want.
func near(t *testing.T, what string, got, want, share float64) {
	t.Helper()
	testkit.Want(t, got >= want*(1-share) && got <= want*(1+share), "%s: %v, want %v ± %v %%", what, got, want, 100*share)
}
