package rig

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cabrank/cabrank/lab/internal/scenario"
	"github.com/cabrank/cabrank/lab/internal/testbed"
)

// Do does what an event says, and returns when it is over, with what was done; callers go
// on meanwhile. A worker stands still with what it has started, and is slow for good if For
// is 0: only `cabrank lab worker` knows that. One that is killed is started again For later,
// or not; one that is removed gets no more callers, and ends For later. DoAdd starts the
// next one that was Later, or was removed.
//
// Errors: one line; an action that was begun when ctx ends is undone as far as it can be.
func (r *Rig) Do(ctx context.Context, e scenario.Event) (did string, err error) {
	did = e.String()
	act := map[scenario.Do]func(context.Context, int, time.Duration) error{
		scenario.DoStop: r.halt, scenario.DoSlow: r.slow, scenario.DoKill: r.kill, scenario.DoAdd: r.add, scenario.DoRemove: r.remove,
	}[e.Do]
	if e.Do == scenario.DoRoll {
		return did, r.roll(ctx)
	}
	if act == nil {
		return did, fmt.Errorf("event %q is nothing that is done to workers", e.Do)
	}
	meant, err := r.meant(e)
	if err != nil {
		return did, err
	}
	var acting errgroup.Group
	for _, i := range meant {
		acting.Go(func() error { return act(ctx, i, e.For) })
	}
	return did, acting.Wait()
}

// meant are the workers that an event meets.
func (r *Rig) meant(e scenario.Event) (which []int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	add := e.Do == scenario.DoAdd
	for i := range r.spec.Workers {
		if !add && e.Worker == i+1 || (add || e.Worker == 0) && r.on[i] != add && !r.coming[i] {
			which = append(which, i)
		}
	}
	switch n := len(r.spec.Workers); {
	case len(which) > 0 && add:
		r.coming[which[0]] = true
		return which[:1], nil
	case len(which) > 0:
		return which, nil
	case add:
		return nil, fmt.Errorf("all %d workers are there: none can be added", n)
	default:
		return nil, fmt.Errorf("no worker of %d is there that it meets", n)
	}
}

// halt has worker i stand still for a while.
func (r *Rig) halt(ctx context.Context, i int, d time.Duration) error {
	group, err := r.group(ctx, i)
	if err != nil {
		return err
	}
	if err := syscall.Kill(-group, syscall.SIGSTOP); err != nil {
		return fmt.Errorf("stop %s: %w", workerName(i), err)
	}
	_ = testbed.Wait(ctx, d)
	if err := syscall.Kill(-group, syscall.SIGCONT); err != nil {
		return fmt.Errorf("let %s go on: %w", workerName(i), err)
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
		return fmt.Errorf("slow %s: %w", workerName(i), err)
	}
	if d == 0 {
		return nil
	}
	_ = testbed.Wait(ctx, d)
	if now, err := r.group(ctx, i); err != nil || now != pid {
		return fmt.Errorf("%s has ended meanwhile: only `cabrank lab worker` knows how to be slow", workerName(i))
	}
	return syscall.Kill(pid, syscall.SIGUSR2)
}

// group is the process group of worker i, whoever has started it.
func (r *Rig) group(ctx context.Context, i int) (int, error) {
	name := workerName(i)
	if starter, ok := r.front.(*cabrankFront); ok && r.spec.Front.Starts {
		status, err := starter.status(ctx)
		if err != nil {
			return 0, err
		}
		for _, w := range status.Workers {
			if w.Name == name && w.PID > 0 {
				return w.PID, nil // cabrank makes each the leader of a group
			}
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
	if err := testbed.Wait(ctx, again); err != nil {
		return err
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
	_ = testbed.Wait(ctx, later)
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
