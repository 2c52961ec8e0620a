package trial

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/rig"
	"github.com/cabrank/cabrank/lab/internal/scenario"
	"github.com/cabrank/cabrank/lab/internal/testbed"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// startError says that the processes of an arm could not be started.
type startError struct{ cause error }

func (e *startError) Error() string { return e.cause.Error() }
func (e *startError) Unwrap() error { return e.cause }

// headStart is how long generators have to begin at the same moment.
const headStart = 20 * time.Millisecond

// block runs number i and keeps what it came to.
func (t *trial) block(ctx context.Context, i int) error {
	c := &t.cells[i]
	p := Progress{Block: i + 1, Blocks: len(t.cells), Arm: c.arm.Name, Load: c.load.Name, Round: c.round, Left: t.left(i)}
	t.tell(p)
	b := result.Block{Arm: c.arm.Name, Load: c.load.Name, Round: c.round, Order: c.order, Seed: c.seed, Began: time.Now()}
	record, err := t.measure(ctx, c, &b)
	if err != nil {
		return err
	}
	b.Took = time.Since(b.Began)
	if b.Raw, err = result.SaveRecord(t.Folder, len(t.run.Blocks)+1, record); err != nil {
		return err
	}
	t.run.Blocks = append(t.run.Blocks, b)
	t.run.Took = t.elapsed()
	p.Done, p.Left = &b, t.left(i+1)
	t.tell(p)
	return result.Save(t.Folder, t.run)
}

func (t *trial) tell(p Progress) {
	if t.Tell != nil {
		t.Tell(p)
	}
}

func (t *trial) measure(ctx context.Context, c *cell, b *result.Block) (*traffic.Record, error) {
	plan, err := c.load.Plan(c.seed)
	if err != nil {
		return nil, err
	}
	stand, err := t.Start(ctx, c.arm, c.load)
	if err != nil {
		return nil, &startError{err}
	}
	defer stand.Close()
	for _, note := range stand.Notes() {
		t.note(note)
	}
	crew, err := t.hire(c, stand, plan)
	if err != nil {
		return nil, err
	}
	defer crew.close()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	before := stand.Usage()
	noise := func() float64 { return 0 }
	if t.Noise != nil {
		noise = t.Noise()
	}
	at := time.Now().Add(headStart)
	undisturb := disturb(ctx, stand, c.load.Events, at.Add(plan.Warmup))
	record, busy, err := crew.run(ctx, at)
	b.Events = undisturb()
	if err != nil {
		return nil, err
	}
	b.Noise = noise()
	b.Processes = append(crew.processes, rig.Between(before, stand.Usage())...)
	b.Measure(record, workersAt(c.arm, c.load))
	t.against(c, plan, b, record)
	b.Marks = result.Marks(record, busy, b.Noise)
	if record.Cut {
		t.run.Cut = true
		b.Marks = append(b.Marks, "ended early")
	}
	return record, nil
}

// workersAt is how many workers there are in a block, those that are added included.
func workersAt(a *scenario.Arm, l *scenario.Load) int {
	n := cmp.Or(l.Workers, a.Workers.Count)
	for _, e := range l.Events {
		if e.Do == scenario.DoAdd {
			n++
		}
	}
	return n
}

// disturb does events at their moments since the counted part began. Bursts are in the
// plan; they are only told. end ends what is under way, and tells what was done.
func disturb(ctx context.Context, stand Stand, events []scenario.Event, from time.Time) (end func() []result.Event) {
	ctx, cancel := context.WithCancel(ctx)
	done := make([]result.Event, len(events)) // each is written by its own goroutine
	var doing sync.WaitGroup
	for i, e := range events {
		if e.Do == scenario.DoBurst {
			done[i] = result.Event{Did: e.String(), At: e.At, Took: e.For}
			continue
		}
		doing.Go(func() {
			if testbed.Wait(ctx, time.Until(from.Add(e.At))) != nil {
				return
			}
			began := time.Now()
			did, err := stand.Do(ctx, e)
			done[i] = result.Event{Did: did, At: began.Sub(from), Took: time.Since(began)}
			if err != nil {
				done[i].Err = err.Error()
			}
		})
	}
	return func() []result.Event {
		cancel()
		doing.Wait()
		return slices.DeleteFunc(done, func(e result.Event) bool { return e.Did == "" })
	}
}
