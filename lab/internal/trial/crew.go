package trial

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cabrank/cabrank/lab/internal/agent"
	"github.com/cabrank/cabrank/lab/internal/caller"
	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// Generator makes calls in a process of its own: agent.Process is one, and explains the
// methods.
type Generator interface { //nolint:interfacebloat // the life of a process
	// PID is that of the process.
	PID() int
	// Ready waits until it can begin, and says how it calls.
	Ready() (how string, err error)
	// Begin has it begin at a moment.
	Begin(at time.Time)
	// Stop has no more calls start.
	Stop()
	// Wait returns what it has come to.
	Wait() (*agent.Answer, error)
	// Close ends it.
	Close()
}

// Hire starts generators for Options.Hire, as processes.
func Hire(command []string, job agent.Job) (Generator, error) { return agent.Start(command, job) }

type crew struct {
	all       []Generator
	processes []result.Process
}

// hire starts the generators of a block and waits until each can begin.
func (t *trial) hire(c *cell, stand Stand, plan traffic.Plan) (*crew, error) {
	s, n := t.Scenario, t.generators(c.arm, c.load)
	method, data, messages := s.CallAt(c.load)
	var jobs []agent.Job
	if c.arm.Client.Connections == caller.PerCall {
		plan.Most = min(plan.Most, caller.PerCall.MostUnderWay()) // of each generator
	}
	for part := range n {
		plan.Part, plan.Parts = part, n
		jobs = append(jobs, agent.Job{
			Target: stand.Target(), Method: method, Proto: s.Proto, Imports: s.Imports, Raw: c.arm.Client.Raw, Data: data, Messages: messages,
			Path: s.HTTP.Path, Ready: s.HTTP.Ready, Metadata: s.Metadata, WorkerKey: s.WorkerKey, Connections: c.arm.Client.Connections.String(),
			DNSInterval: c.arm.Client.DNSInterval, Way: c.arm.Client.Way, Plan: plan,
		})
	}
	hired := &crew{}
	for _, job := range jobs {
		p, err := t.Hire(pinned(c.arm.Client.Cores, stand.Caller(t.Agent)), job)
		if err != nil {
			hired.close()
			return nil, err
		}
		hired.all = append(hired.all, p)
	}
	for _, p := range hired.all {
		how, err := p.Ready()
		if err != nil {
			hired.close()
			return nil, err
		}
		t.note(fmt.Sprintf("%s: %s.", c.arm.Name, how))
	}
	return hired, nil
}

// pinned is a command that runs on some cores, all if there are none.
func pinned(cores string, command []string) []string {
	if cores == "" {
		return command
	}
	return append([]string{"taskset", "-c", cores}, command...)
}

// run has all of them begin at a moment, and merges what they come to. busy is the share
// of the cores that they have used together.
func (c *crew) run(ctx context.Context, at time.Time) (whole *traffic.Record, busy float64, err error) {
	unwatch := context.AfterFunc(ctx, func() { c.each(Generator.Stop) })
	defer unwatch()
	c.each(func(g Generator) { g.Begin(at) })
	answers := make([]*agent.Answer, len(c.all))
	var waiting errgroup.Group
	for i, p := range c.all {
		waiting.Go(func() (err error) {
			answers[i], err = p.Wait()
			return err
		})
	}
	if err := waiting.Wait(); err != nil {
		return nil, 0, err
	}
	for i, a := range answers {
		c.processes = append(c.processes, result.Process{
			Role: fmt.Sprintf("generator %d", i+1), PID: c.all[i].PID(), CPU: a.CPU, RSS: a.PeakRSS, PeakRSS: a.PeakRSS,
		})
		busy += a.Busy()
		if whole == nil {
			whole = a.Record
			continue
		}
		if err := whole.Merge(a.Record); err != nil {
			return nil, 0, err
		}
	}
	return whole, busy, nil
}

func (c *crew) each(do func(Generator)) {
	for _, g := range c.all {
		do(g)
	}
}

func (c *crew) close() {
	c.each(Generator.Stop) // all at once, before any is waited for
	c.each(Generator.Close)
}
