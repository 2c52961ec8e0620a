package service

import (
	"context"
	"time"

	"github.com/cabrank/cabrank/internal/admin"
	"github.com/cabrank/cabrank/internal/cli"
	"github.com/cabrank/cabrank/internal/config"
)

// stopSlack is what a stop may take beyond its own time limits (R17): 3 s for the last
// answers, and 7 s for processes that do not die. docs/control.md counts with it.
const stopSlack = 10 * time.Second

// stopLimit is the longest time that a stop can take (R17). now leaves out the waits
// for calls.
func stopLimit(cfg *config.Config, now bool) time.Duration {
	limit := endLimit(cfg) + stopSlack
	if now {
		return limit
	}
	return limit + cfg.PreStopDelay + cfg.DrainTimeout
}

// endLimit is how long workers without calls may take to end.
func endLimit(cfg *config.Config) time.Duration {
	if len(cfg.Hooks.BeforeStop) > 0 {
		return cfg.Workers.BootTimeout + cfg.Workers.StopTimeout
	}
	return cfg.Workers.StopTimeout
}

// Stop implements admin.Process.
func (c controls) Stop(ctx context.Context, request admin.StopRequest, tell func(admin.Event)) error {
	s := c.s
	tell(admin.Event{Step: "stopping", LimitSeconds: stopLimit(s.current(), request.Now).Seconds()})
	s.orders.askToStop(stopRequest{now: request.Now})
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	told := 0
	for {
		select {
		case <-look.C:
			if calls := s.inFlight(); calls != told {
				tell(admin.Event{Step: "draining", Note: cli.Plural(calls, "call")})
				told = calls
			}
		case <-s.orders.ended:
			tellCut(tell, int(s.orders.cut.Load()))
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}
