package main

import (
	"context"
	"time"

	"github.com/cabrank/cabrank/internal/admin"
)

// stopSlack is what a stop may take beyond its own time limits: the GOAWAYs, the
// last answers, the death of processes (R17).
const stopSlack = 9 * time.Second

// Stop implements admin.Process.
func (c controls) Stop(ctx context.Context, request admin.StopRequest, tell func(admin.Event)) error {
	s := c.s
	limit := s.current().PreStopDelay + s.current().DrainTimeout + s.current().Workers.StopTimeout + stopSlack
	if request.Now {
		limit = s.current().Workers.StopTimeout + stopSlack
	}
	tell(admin.Event{Step: "stopping", LimitSeconds: limit.Seconds()})
	s.orders.askToStop(stopRequest{now: request.Now})
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	told := 0
	for {
		select {
		case <-look.C:
			if calls := s.inFlight(); calls != told {
				tell(admin.Event{Step: "draining", Note: plural(calls, "call")})
				told = calls
			}
		case <-s.orders.ended:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}
