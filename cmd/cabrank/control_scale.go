package main

import (
	"context"
	"fmt"
	"time"

	"github.com/cabrank/cabrank/internal/admin"
	"github.com/cabrank/cabrank/internal/worker"
)

// Scale implements admin.Fleet.
func (c controls) Scale(ctx context.Context, request admin.ScaleRequest, tell func(admin.Event)) error {
	s := c.s
	if s.workers == nil {
		return &admin.MisuseError{Reason: "there are no workers to scale, only upstreams"}
	}
	n := request.Workers
	if request.Auto {
		if s.autoscale.Follow() {
			tell(admin.Event{Step: "scaling", Note: "as the calls need"})
			return nil
		}
		n = s.current().Workers.Count
	}
	limit := s.workers.ScaleLimit(n)
	if err := s.autoscale.Hold(n); err != nil {
		return &admin.MisuseError{Reason: err.Error()}
	}
	tell(admin.Event{Step: "scaling", Total: n, LimitSeconds: limit.Seconds()})
	return s.awaitScale(ctx, n, limit, tell)
}

// awaitScale waits until there are n workers, all ready, and nobody above that.
func (s *service) awaitScale(ctx context.Context, n int, limit time.Duration, tell func(admin.Event)) error {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	late := time.NewTimer(limit)
	defer late.Stop()
	told := ""
	for {
		now := s.scaleStep(n)
		if stepText(now) != told {
			told = stepText(now)
			tell(now)
		}
		o := s.workers.Overview()
		switch loop := s.crashLoop(); {
		case o.Wanted != n:
			return fmt.Errorf("another scale took over: %d workers", o.Wanted)
		case now.Completed == n && now.Note == "":
			return nil
		case loop != "" && now.Note == "": // else it may be one of those that go
			return fmt.Errorf("%s; the others go on", loop)
		}
		select {
		case <-look.C:
		case <-late.C:
			return fmt.Errorf("not all of %d workers are ready, or others have not ended, after %v: see cabrank status", n, limit)
		case <-ctx.Done():
			return errStopping
		}
	}
}

// scaleStep tells how many of n workers are ready.
func (s *service) scaleStep(n int) admin.Event {
	ready, all := 0, 0
	for _, w := range s.workers.Workers() {
		switch w.State {
		case worker.Vacant:
			continue
		case worker.Ready, worker.Suspect:
			ready++
		default:
		}
		all++
	}
	e := admin.Event{Step: "ready", Completed: min(ready, n), Total: n}
	if all > n { // some of them may not have been told yet
		e.Note = plural(all-n, "worker") + " ending"
	}
	return e
}

// crashLoop names a worker that will not get ready soon, and why.
func (s *service) crashLoop() string {
	for _, w := range s.workers.Workers() {
		if w.State == worker.CrashLoop {
			return fmt.Sprintf("%s is in a crash loop (%s)", w.Name, w.LastExit)
		}
	}
	return ""
}
