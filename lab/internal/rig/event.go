package rig

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// Action is what is done to an arm.
type Action string

// The actions. While one of them runs callers go on.
const (
	// Stop has a worker stand still, with what it has started (SIGSTOP).
	Stop Action = "stop"
	// Slow makes a worker slow for a while, or for good if For is 0: SIGUSR1, then
	// SIGUSR2. Only `cabrank lab worker` knows that.
	Slow Action = "slow"
	// Kill ends a worker (SIGKILL), which is started again For later; 0: it is not.
	Kill Action = "kill"
	// Add starts a worker that was Later, or was removed, and sends callers to it; the
	// first of these if no name is given.
	Add Action = "add"
	// Remove sends no more callers to a worker, and ends it (SIGTERM) For later.
	Remove Action = "remove"
	// Roll replaces all workers, one after the other.
	Roll Action = "roll"
)

// Actions lists them.
func Actions() []string {
	return []string{string(Add), string(Kill), string(Remove), string(Roll), string(Slow), string(Stop)}
}

// Event is one action on an arm.
type Event struct {
	Do     Action
	Worker string // by name; empty: all of them, or for Add the next one
	For    time.Duration
}

// String says what is done: "worker-2 stopped for 1.5s".
func (e Event) String() string {
	who := cmp.Or(e.Worker, "all workers")
	text := map[Action]string{
		Roll: "all workers replaced", Stop: who + " stopped", Slow: who + " slow", Kill: who + " killed",
		Add: cmp.Or(e.Worker, "a worker") + " added", Remove: who + " removed",
	}[e.Do]
	switch {
	case e.Do == Kill && e.For > 0:
		text += fmt.Sprintf(", started again after %v", e.For)
	case e.Do == Stop, e.Do == Slow && e.For > 0:
		text += fmt.Sprintf(" for %v", e.For)
	}
	return cmp.Or(text, fmt.Sprintf("%s %s", e.Do, who))
}

// Do does it, and returns when it is over: a worker that was stopped goes on then.
//
// Errors: one line; an action that was begun when ctx ends is undone as far as it can be.
func (r *Rig) Do(ctx context.Context, e Event) error {
	act := map[Action]func(context.Context, int, time.Duration) error{
		Stop: r.halt, Slow: r.slow, Kill: r.kill, Add: r.add, Remove: r.remove,
	}[e.Do]
	if e.Do == Roll {
		return r.roll(ctx)
	}
	if act == nil {
		return fmt.Errorf("event %q: there are %s", e.Do, strings.Join(Actions(), ", "))
	}
	meant, err := r.meant(e)
	if err != nil {
		return err
	}
	var acting errgroup.Group
	for _, i := range meant {
		acting.Go(func() error { return act(ctx, i, e.For) })
	}
	return acting.Wait()
}

// meant are the workers that an event meets.
func (r *Rig) meant(e Event) (which []int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for i, w := range r.spec.Workers {
		names = append(names, w.Name)
		if e.Worker == w.Name || e.Worker == "" && r.on[i] == (e.Do != Add) && !r.coming[i] {
			which = append(which, i)
		}
	}
	switch {
	case len(which) > 0 && e.Do == Add:
		r.coming[which[0]] = true
		return which[:1], nil
	case len(which) > 0:
		return which, nil
	case e.Worker != "":
		return nil, fmt.Errorf("no worker is called %q, there are %s", e.Worker, strings.Join(names, ", "))
	case e.Do == Add:
		return nil, fmt.Errorf("all %d workers are there: none can be added", len(names))
	default:
		return nil, fmt.Errorf("no worker is there")
	}
}

// wait returns when the time is over or ctx is.
func wait(ctx context.Context, d time.Duration) {
	late := time.NewTimer(d)
	defer late.Stop()
	select {
	case <-late.C:
	case <-ctx.Done():
	}
}

// halt has worker i stand still for a while.
func (r *Rig) halt(ctx context.Context, i int, d time.Duration) error {
	group, err := r.group(ctx, i)
	if err != nil {
		return err
	}
	if err := syscall.Kill(-group, syscall.SIGSTOP); err != nil {
		return fmt.Errorf("stop %s: %w", r.spec.Workers[i].Name, err)
	}
	wait(ctx, d)
	if err := syscall.Kill(-group, syscall.SIGCONT); err != nil {
		return fmt.Errorf("let %s go on: %w", r.spec.Workers[i].Name, err)
	}
	return nil
}

// slow tells worker i to be slow, and after a while no more.
func (r *Rig) slow(ctx context.Context, i int, d time.Duration) error {
	pid, err := r.group(ctx, i)
	if err != nil {
		return err
	}
	if err := syscall.Kill(pid, syscall.SIGUSR1); err != nil {
		return fmt.Errorf("slow %s: %w", r.spec.Workers[i].Name, err)
	}
	if d == 0 {
		return nil
	}
	wait(ctx, d)
	if now, err := r.group(ctx, i); err != nil || now != pid {
		return fmt.Errorf("%s has ended meanwhile: only `cabrank lab worker` knows how to be slow", r.spec.Workers[i].Name)
	}
	return syscall.Kill(pid, syscall.SIGUSR2)
}

// group is the process group of worker i, whoever has started it.
func (r *Rig) group(ctx context.Context, i int) (int, error) {
	name := r.spec.Workers[i].Name
	if starter, ok := r.front.(*cabrankFront); ok && r.spec.Front.Starts {
		pids, err := starter.workers(ctx)
		if err != nil {
			return 0, err
		}
		if pid, runs := pids[fmt.Sprintf("worker-%d", i+1)]; runs {
			return pid, nil // cabrank makes each the leader of a group
		}
		return 0, fmt.Errorf("%s does not run", name)
	}
	child := r.workers[i].now()
	if child == nil {
		return 0, fmt.Errorf("%s was not started", name)
	}
	select {
	case <-child.Ended():
		return 0, fmt.Errorf("%s has ended", name)
	default:
		return child.PID(), nil
	}
}

func (r *Rig) kill(ctx context.Context, i int, again time.Duration) error {
	group, err := r.group(ctx, i)
	if err != nil {
		return err
	}
	if r.workers == nil { // who started it starts it again
		return syscall.Kill(-group, syscall.SIGKILL)
	}
	r.workers[i].now().Kill()
	if again == 0 {
		return nil
	}
	wait(ctx, again)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return r.begin(ctx, i)
}

// begin starts worker i and waits until it answers.
func (r *Rig) begin(ctx context.Context, i int) error {
	limited, cancel := context.WithTimeout(ctx, r.spec.Ready)
	defer cancel()
	return r.workers[i].begin(limited, byCall, r.places[i].addr())
}

func (r *Rig) add(ctx context.Context, i int, _ time.Duration) error {
	defer func() {
		r.mu.Lock()
		r.coming[i] = false
		r.mu.Unlock()
	}()
	if r.workers != nil {
		if err := r.begin(ctx, i); err != nil {
			return err
		}
	}
	return r.send(ctx, i, true)
}

func (r *Rig) remove(ctx context.Context, i int, later time.Duration) error {
	if err := r.send(ctx, i, false); err != nil {
		return err
	}
	wait(ctx, later)
	if r.workers != nil {
		r.workers[i].stop()
	}
	return nil
}

// send has callers sent to worker i, or no more.
func (r *Rig) send(ctx context.Context, i int, on bool) error {
	r.changing.Lock()
	defer r.changing.Unlock()
	r.mu.Lock()
	r.on[i] = on
	r.mu.Unlock()
	return r.front.change(ctx, r.backends())
}

// roll replaces the workers: by cabrank, which has started them, or one after the other
// as a deploy does without it: no more callers, an end, a start, callers again.
func (r *Rig) roll(ctx context.Context) error {
	if starter, ok := r.front.(*cabrankFront); ok && r.spec.Front.Starts {
		return starter.roll(ctx)
	}
	for i := range r.workers {
		r.mu.Lock()
		on := r.on[i]
		r.mu.Unlock()
		if !on {
			continue
		}
		if err := r.remove(ctx, i, 0); err != nil {
			return err
		}
		if err := r.add(ctx, i, 0); err != nil {
			return err
		}
	}
	return nil
}
