package traffic

import (
	"context"
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
	if err := r.check(); err != nil {
		t.Error(err)
	}
	return r
}

// near fails unless got is within a share of want.
func near(t *testing.T, what string, got, want, share float64) {
	t.Helper()
	if got < want*(1-share) || got > want*(1+share) {
		t.Errorf("%s: %v, want %v ± %v %%", what, got, want, 100*share)
	}
}
