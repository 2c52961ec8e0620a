package service

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cabrank/cabrank/internal/admin"
	"github.com/cabrank/cabrank/internal/cli"
	"github.com/cabrank/cabrank/internal/discover"
	"github.com/cabrank/cabrank/internal/worker"
)

// cutTime is how long the answers of cut calls may take: the rest of a message that
// is on its way is waited for, a second at most.
const cutTime = 1500 * time.Millisecond

// Drain implements admin.Fleet.
func (c controls) Drain(ctx context.Context, request admin.DrainRequest, tell func(admin.Event)) error {
	names := c.s.workerNames()
	switch {
	case slices.Contains(names, request.Target) && request.Undo:
		return &admin.MisuseError{Reason: request.Target + " is a worker: it is replaced, which cannot be undone"}
	case slices.Contains(names, request.Target):
		tell(admin.Event{Step: "replacing", Worker: request.Target, Total: 1, LimitSeconds: c.s.workers.ReplaceLimit().Seconds()})
		return c.s.unlessStopping(c.s.workers.Replace(ctx, request.Target, request.Force, tellProgress(tell)))
	}
	outside := c.s.upstreamNames()
	if slices.Contains(outside, request.Target) {
		return c.s.drainUpstream(ctx, request, tell)
	}
	there := strings.Join(append(names, outside...), ", ")
	return &admin.MisuseError{Reason: fmt.Sprintf("there is no worker or upstream %q; there are: %s", request.Target, cmp.Or(there, "none"))}
}

// drainUpstream keeps new calls from an upstream and waits for those that run
// there, or gives it calls again.
func (s *service) drainUpstream(ctx context.Context, request admin.DrainRequest, tell func(admin.Event)) error {
	if err := s.upstreams.SetDrained(request.Target, !request.Undo); err != nil {
		return &admin.MisuseError{Reason: err.Error()}
	}
	if request.Undo {
		return nil
	}
	timeout := s.current().DrainTimeout
	if request.Force {
		timeout = 0
	}
	tell(admin.Event{Step: "draining", Worker: request.Target, LimitSeconds: (timeout + cutTime).Seconds()})
	over, err := s.awaitUpstream(ctx, request.Target, timeout, tell)
	if over || err != nil {
		return err
	}
	before := s.outside.Activity(request.Target).Cuts
	s.outside.Cut(request.Target)
	_, err = s.awaitUpstream(ctx, request.Target, cutTime, func(admin.Event) {})
	tellCut(tell, int(s.outside.Activity(request.Target).Cuts)-int(before))
	return err
}

// tellCut tells how many calls were cut, if there were any.
func tellCut(tell func(admin.Event), calls int) {
	if calls > 0 {
		tell(admin.Event{CallsCut: calls})
	}
}

// awaitUpstream waits until no call runs at an upstream, for so long at most, and
// reports whether that is so.
func (s *service) awaitUpstream(ctx context.Context, name string, timeout time.Duration, tell func(admin.Event)) (over bool, err error) {
	limit, look := time.NewTimer(timeout), time.NewTicker(lookEvery)
	defer limit.Stop()
	defer look.Stop()
	for told := 0; ; {
		calls := s.outside.Activity(name).InFlight
		if calls == 0 {
			return true, nil
		}
		if calls != told {
			tell(admin.Event{Step: "draining", Worker: name, Note: cli.Plural(calls, "call")})
			told = calls
		}
		select {
		case <-look.C:
		case <-limit.C:
			return false, nil
		case <-ctx.Done():
			return false, errStopping
		}
	}
}

// upstreamNames returns the names of the endpoints that someone else runs.
func (s *service) upstreamNames() []string {
	return mapped(s.upstreams.Endpoints(), func(u discover.Status) string { return u.Name })
}

// workerNames returns the names of the workers that there are.
func (s *service) workerNames() (names []string) {
	for _, w := range s.fleet() {
		if w.State != worker.Vacant {
			names = append(names, w.Name)
		}
	}
	return names
}
