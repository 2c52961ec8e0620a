package goal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cabrank/cabrank/lab/internal/traffic"
)

const (
	// A service has recovered when the p50 of a probe is at most slower times that of
	// the first one and slack, and at most moreErrors more of the calls fail.
	slower     = 2
	slack      = time.Millisecond
	moreErrors = 0.10
	// Between two probes, doubled each time.
	firstPause = 100 * time.Millisecond
	mostPause  = 5 * time.Second
)

// errBroken says that a service did not become what it was.
var errBroken = errors.New("the service does not answer as before")

// health is how a service answers who hardly asks.
type health struct {
	p50    time.Duration
	failed float64
}

func (h health) String() string {
	return fmt.Sprintf("p50 %s with %.3g%% errors", short(h.p50), 100*h.failed)
}

func healthOf(r *traffic.Record) health {
	return health{p50: observed(r.Latency(), 0.5), failed: r.FailedShare()}
}

func (h health) asGoodAs(before health) bool {
	return h.failed < 1 && h.p50 <= slower*before.p50+slack && h.failed <= before.failed+moreErrors
}

func (s *search) probe(ctx context.Context) (health, error) {
	r, err := s.options.Probe(ctx)
	if err != nil {
		return health{}, err
	}
	if ctx.Err() != nil {
		return health{}, ctx.Err()
	}
	if r.Due == 0 {
		return health{}, errors.New("the probe made no call")
	}
	return healthOf(r), nil
}

// recover waits until the service answers as before the first run.
//
// Errors: errBroken when the longest rest is over; that of ctx; those of a probe.
func (s *search) recover(ctx context.Context) error {
	began := time.Now()
	for pause := firstPause; ; pause = min(2*pause, mostPause) {
		now, err := s.probe(ctx)
		if err != nil || now.asGoodAs(s.before) {
			return err
		}
		s.after = now
		left := mostRest - time.Since(began)
		if left <= 0 {
			return errBroken
		}
		select {
		case <-time.After(min(pause, left)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
