package service

import (
	"context"
	"fmt"
	"time"

	"github.com/cabrank/cabrank/internal/admin"
	"github.com/cabrank/cabrank/internal/cli"
	"github.com/cabrank/cabrank/internal/worker"
)

// Scale implements admin.Fleet.
func (c controls) Scale(ctx context.Context, request admin.ScaleRequest, tell func(admin.Event)) error {
	s := c.s
	if s.workers == nil {
		return &admin.MisuseError{Reason: "there are no workers to scale, only upstreams"}
	}
	n, note := request.Workers, ""
	if request.Auto {
		if s.autoscale.Follow() {
			tell(admin.Event{Step: "scaling", Note: "as the calls need"})
			return nil
		}
		n, note = s.current().Workers.Count.N, "to the number in the configuration: workers.count has no bounds"
	}
	limit := s.workers.ScaleLimit(n)
	if err := s.autoscale.Hold(n); err != nil {
		return &admin.MisuseError{Reason: err.Error()}
	}
	tell(admin.Event{Step: "scaling", Total: n, Note: note, LimitSeconds: limit.Seconds()})
	before := s.cutByScale()
	err := s.awaitScale(ctx, n, limit, tell)
	tellCut(tell, s.cutByScale()-before)
	return err
}

// cutByScale counts the calls that were cut because their workers were too many.
func (s *service) cutByScale() (calls int) {
	for _, w := range s.workers.Workers() {
		calls += w.Cut[worker.ReasonScale]
	}
	return calls
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
		if now.Text() != told {
			told = now.Text()
			tell(now)
		}
		o := s.workers.Overview()
		switch loop, crashes := s.crashLoop(); {
		case o.Wanted != n:
			return fmt.Errorf("another scale took over: %d workers", o.Wanted)
		case now.Completed == n && now.Note == "":
			return nil
		case crashes && now.Note == "": // else it may be one of those that go
			return fmt.Errorf("%s is in a crash loop (%s); the others go on", loop.Name, loop.LastExit)
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
	for _, w := range s.fleet() {
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
		e.Note = cli.Plural(all-n, "worker") + " ending"
	}
	return e
}
