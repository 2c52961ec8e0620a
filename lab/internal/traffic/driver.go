package traffic

import "context"

// Driver is a Client that needs no goroutine for a call that is under way: what reads the
// answers begins the next calls. It is for clients that cost less than a goroutine does.
type Driver interface {
	Client

	// Start begins calls and returns; each ends with End of its task. It may change the
	// order of the tasks, and keeps none of them. ctx is that of Call, and the same for
	// all calls of a load. Many goroutines call it at a time.
	Start(ctx context.Context, tasks []Task)
}

// Task is a call to make, and who is told how it has ended.
type Task struct {
	Call Call
	End  Ender
}

// Ender is told by a Driver how a call has ended, with the moment of that. It may have
// another call to make at once, on the same connection; behind a failure it has none. It
// waits for nobody, is told of one call at a time, and keeps nothing of the answer.
type Ender interface {
	End(answer *Answer) (next Call, more bool)
}

// mostTasks bounds how long the first call of a batch waits for the last one.
const mostTasks = 64

// paced is a call of an open loop that a Driver makes; it is used again.
type paced struct{ flight }

// End records the call.
func (p *paced) End(answer *Answer) (next Call, more bool) {
	load := p.load
	p.end(answer, load.endOf(answer, 0))
	load.spare.Put(p)
	load.calls.Done()
	return Call{}, false
}

// drive hands what is due to the Driver.
func (p *pacer) drive() {
	if len(p.due) == 0 {
		return
	}
	now := p.load.now()
	tasks := p.tasks[:0]
	for _, a := range p.due {
		c, _ := p.load.spare.Get().(*paced)
		if c == nil {
			c = new(paced)
		}
		c.flight = flight{load: p.load, tally: p.load.tallies[a.Number%uint64(len(p.load.tallies))], Arrival: a, begun: now}
		if call, ok := c.begin(); ok {
			p.load.calls.Add(1)
			tasks = append(tasks, Task{call, c})
		}
	}
	p.due, p.tasks = p.due[:0], tasks
	p.load.driver.Start(p.ctx, tasks)
}
