package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cabrank/cabrank/internal/admin"
	"github.com/cabrank/cabrank/internal/worker"
)

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
	if err := s.upstreams.Hold(request.Target, !request.Undo); err != nil {
		return &admin.MisuseError{Reason: err.Error()}
	}
	if request.Undo {
		return nil
	}
	tell(admin.Event{Step: "draining", Worker: request.Target, LimitSeconds: s.current().DrainTimeout.Seconds()})
	timeout := s.current().DrainTimeout
	if request.Force {
		timeout = 0
	}
	limit, look := time.NewTimer(timeout), time.NewTicker(lookEvery)
	defer limit.Stop()
	defer look.Stop()
	for told := 0; ; {
		select {
		case <-look.C:
			calls := s.outside.Activity(request.Target).InFlight
			if calls == 0 {
				return nil
			}
			if calls != told {
				tell(admin.Event{Step: "draining", Worker: request.Target, Note: plural(calls, "call")})
				told = calls
			}
		case <-limit.C:
			s.outside.Cut(request.Target)
			return nil
		case <-ctx.Done():
			return errStopping
		}
	}
}

// upstreamNames returns the names of the endpoints that someone else runs.
func (s *service) upstreamNames() []string {
	var names []string
	for _, u := range s.upstreams.Endpoints() {
		names = append(names, u.Name)
	}
	return names
}

// workerNames returns the names of the workers that there are.
func (s *service) workerNames() []string {
	if s.workers == nil {
		return nil
	}
	var names []string
	for _, w := range s.workers.Workers() {
		if w.State != worker.Vacant {
			names = append(names, w.Name)
		}
	}
	return names
}
