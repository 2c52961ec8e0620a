package rig

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cabrank/cabrank/internal/health"
	"github.com/cabrank/cabrank/internal/health/check"
	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/testbed"
)

// process is one of an arm. It may end and be started again: it stays the same one to
// whoever counts.
type process struct {
	role    string // as result.Process has it
	name    string // as people call it
	program testbed.Program
	group   *testbed.Group // nil if there is none
	pods    *testbed.Pods  // the network that it runs in; nil: that of this process

	mu    sync.Mutex // guards what follows
	child *testbed.Child
	spent time.Duration // CPU of those that have ended
}

// process makes one, in a control group of its own. It is not started.
func (r *Rig) process(role, name, group string, cores float64, program testbed.Program) (p *process, err error) {
	program.Keeper, program.Log = r.keeper, r.spec.log(name)
	p = &process{role: role, name: name, program: program, pods: r.pods}
	p.group, err = r.newGroup(group, cores)
	return p, err
}

func (p *process) begin(ctx context.Context, how, addr string) error {
	if err := p.start(); err != nil {
		return err
	}
	return p.ready(ctx, how, addr)
}

func (p *process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.child != nil {
		_, cpu := p.child.Exit()
		p.spent += cpu
		p.child = nil
	}
	if _, err := exec.LookPath(p.program.Command[0]); err != nil {
		return fmt.Errorf("%s cannot be started: %w", p.name, err)
	}
	program := p.program
	program.Command = within(p.group, p.pods, program.Command)
	child, err := testbed.Launch(program)
	if err != nil {
		return fmt.Errorf("%s cannot be started: %w", p.name, err)
	}
	p.child = child
	return nil
}

// within is a command that runs in a control group and a network, if there are any.
func within(group *testbed.Group, pods *testbed.Pods, command []string) []string {
	if pods != nil {
		command = append(pods.Enter(), command...)
	}
	if group != nil {
		command = append(group.Enter(), command...)
	}
	return slices.Clone(command)
}

// now returns what runs, or nil if it was never started.
func (p *process) now() *testbed.Child {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.child
}

func (p *process) stop() {
	if child := p.now(); child != nil {
		child.Stop()
	}
}

const (
	askEvery   = 20 * time.Millisecond // how often a process is asked whether it answers
	askTimeout = 2 * time.Second       // bounds one question
)

// How somebody is asked whether he is there.
const (
	byCall       = "call"       // any answer of gRPC will do: not all servers have a health service
	byConnection = "connection" // it is enough that one can be had
)

// ask asks whether somebody answers at an address that this process can reach.
func ask(ctx context.Context, how, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if how == byConnection {
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, "tcp", addr)
		if err != nil {
			return err
		}
		return conn.Close()
	}
	asker, err := check.Open(check.Options{
		Network: "tcp", Address: addr, Interval: askTimeout, Timeout: askTimeout, Redial: askEvery,
	})
	if err != nil {
		return err
	}
	defer asker.Close()
	if answer := asker.Ask(ctx); !answer.IsGood() && answer.Said != health.Refused {
		return errors.New(answer.Reason)
	}
	return nil
}

func (p *process) ready(ctx context.Context, how, addr string) error {
	ask := ask
	if p.pods != nil {
		ask = func(_ context.Context, how, addr string) error { return p.pods.Ask(how, addr) }
	}
	began := time.Now()
	return p.until(ctx, func() error {
		if err := ask(ctx, how, addr); err != nil {
			return fmt.Errorf("%s does not answer at %s after %v: %w", p.name, addr, time.Since(began).Round(100*time.Millisecond), err)
		}
		return nil
	})
}

// until asks again and again, until there is no error, or the process or ctx has ended.
func (p *process) until(ctx context.Context, ask func() error) error {
	child := p.now()
	for {
		err := ask()
		if err == nil {
			return nil
		}
		select {
		case <-time.After(askEvery):
		case <-child.Ended():
			how, _ := child.Exit()
			return fmt.Errorf("%s has ended before it answered: %s%s", p.name, how, said(child))
		case <-ctx.Done():
			return fmt.Errorf("%w%s", err, said(child))
		}
	}
}

// said is the end of what a process has written, in one line.
func said(c *testbed.Child) string {
	const mostLines = 3
	var lines []string
	for line := range strings.Lines(c.Said()) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return "; it wrote: " + strings.Join(lines[max(0, len(lines)-mostLines):], " | ")
}

// usage is what it has used since its first start, and holds now.
func (p *process) usage() result.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	u := result.Process{Role: p.role, CPU: p.spent}
	if p.child != nil {
		u.PID = p.child.PID()
		select {
		case <-p.child.Ended():
			_, cpu := p.child.Exit()
			u.CPU += cpu
		default:
			use, _ := testbed.ReadUse(u.PID) // it is about to end, or this is not Linux
			u.CPU += use.CPU
			u.RSS, u.PeakRSS = use.RSS, use.PeakRSS
		}
	}
	counted(&u, p.group)
	return u
}

// counted puts in what a control group has counted: it also knows what processes have
// used that ended and for which nobody has waited.
func counted(u *result.Process, g *testbed.Group) {
	if g == nil {
		return
	}
	use, known := g.Read()
	if known {
		u.CPU = use.CPU
	}
	u.Quota, u.Throttled, u.ThrottledFor = g.Cores, use.Throttled, use.ThrottledFor
}
