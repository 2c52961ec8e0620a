package service

import (
	"context"
	"time"
)

// phase is a part of the life of a service: its context is done when the phase is over.
type phase struct {
	context.Context //nolint:containedctx // whoever has a part in a phase gets it

	end context.CancelCauseFunc
}

func newPhase() phase {
	ctx, end := context.WithCancelCause(context.Background())
	return phase{ctx, end}
}

func (p phase) isOver() bool { return p.Err() != nil }

// await looks at once and then every so often, until that is true or fails. If ctx ends
// before, the error is the cause of that.
func await(ctx context.Context, every time.Duration, look func() (bool, error)) error {
	for tick := time.Tick(every); ; {
		if done, err := look(); done || err != nil {
			return err
		}
		select {
		case <-tick:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// repeat does something every so often until ctx ends.
func repeat(ctx context.Context, every time.Duration, do func(now time.Time)) {
	for tick := time.Tick(every); ; {
		select {
		case now := <-tick:
			do(now)
		case <-ctx.Done():
			return
		}
	}
}
