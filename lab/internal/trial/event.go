package trial

import (
	"context"
	"sync"
	"time"

	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/scenario"
	"github.com/cabrank/cabrank/lab/internal/testbed"
)

// disturbance does the events of a load.
type disturbance struct {
	cancel context.CancelFunc
	wait   sync.WaitGroup
	mu     sync.Mutex // guards done
	done   []result.Event
}

// disturb does events at their moments since the counted part began. Bursts are in the
// plan; they are only told.
func disturb(ctx context.Context, stand Stand, events []scenario.Event, from time.Time) *disturbance {
	d := &disturbance{done: make([]result.Event, len(events))}
	ctx, d.cancel = context.WithCancel(ctx)
	for i, e := range events {
		if e.Do == scenario.DoBurst {
			d.done[i] = result.Event{Did: e.String(), At: e.At, Took: e.For}
			continue
		}
		d.wait.Go(func() { d.do(ctx, i, stand, e, from) })
	}
	return d
}

func (d *disturbance) do(ctx context.Context, i int, stand Stand, e scenario.Event, from time.Time) {
	if testbed.Wait(ctx, time.Until(from.Add(e.At))) != nil {
		return
	}
	began := time.Now()
	did, err := stand.Do(ctx, e)
	done := result.Event{Did: did, At: began.Sub(from), Took: time.Since(began)}
	if err != nil {
		done.Err = err.Error()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.done[i] = done
}

// end ends what is under way, and tells what was done.
func (d *disturbance) end() (all []result.Event) {
	d.cancel()
	d.wait.Wait()
	for _, e := range d.done {
		if e.Did != "" {
			all = append(all, e)
		}
	}
	return all
}
