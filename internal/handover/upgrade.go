package handover

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

const (
	// helloLimit is how long the new process may take until its first message. A program
	// that is not cabrank, or one from before upgrades, never sends it.
	helloLimit = 30 * time.Second
	// bootGrace is added to the time that the new process gives itself to be ready, so
	// that its own reason comes before it is given up.
	bootGrace = 10 * time.Second
	// maxBoot bounds that time.
	maxBoot = time.Hour
	// takeLimit is how long the new process may take to accept on the listeners.
	takeLimit = 30 * time.Second
	// killLimit is how long a process may take to die of KILL; only a process that is
	// stuck in the kernel takes longer.
	killLimit = 2 * time.Second
)

// Options says how a successor is started.
type Options struct {
	Version   string     // of this program, for the other side's messages
	Path      string     // see Program
	Args      []string   // without the program
	Environ   []string   // see Inherited
	Workers   int        // how many the new process begins with; 0: as configured
	Ports     []int      // of this process's workers, which the new process avoids
	Listeners *Listeners // to hand over

	// Start runs cmd.Start, and returns a function that waits for the end of the
	// process: the supervisor of workers may have to reap it.
	Start func(cmd *exec.Cmd) (wait func() *os.ProcessState, err error)

	// Over is called when the new process accepts connections, before that process is
	// told that it goes on alone: the service manager is told first.
	Over func(pid int)

	// EndLimit is the time between TERM and KILL of a new process that is given up: a
	// process without calls needs this time to end its workers.
	EndLimit time.Duration
}

// Progress is a step of an upgrade.
type Progress struct {
	Step        string // see the constants
	Worker      string // of the new process, if the step is about one
	Note        string // for people
	Done, Total int    // workers of the new process: ready ones, and all that it waits for
}

// Steps of an upgrade, in order.
const (
	StepStarted = "started"      // the new process runs
	StepWorker  = "worker ready" // one more of its workers is ready
	StepTaking  = "handing over" // it asks for the listeners
	StepOver    = "handed over"  // it serves
)

// Successor is a process that has taken over.
//
// The end of its connection tells the successor that this process has ended, so it stays
// open until then: keep the Successor and close nothing.
type Successor struct {
	PID  int
	link *link
}

// Upgrade starts the program again and hands the listeners over to it. It
// returns when the new process serves; the caller stops accepting then, and
// drains.
//
// Errors: one line, a *RefusedError with the new process's own reason; everything is as
// it was before, and the new process and its workers are gone (or will be: the keeper of
// a process that had to be killed takes 2 s). Until the new process serves, the end of
// ctx gives up the upgrade. Upgrade takes at most the time that the new process names
// (bounded by an hour), 72 s, and twice EndLimit.
//
// Concurrency: one at a time; tell is called on the goroutine of the caller.
func Upgrade(ctx context.Context, o Options, tell func(Progress)) (*Successor, error) {
	c, err := startSuccessor(&o)
	if err != nil {
		return nil, err
	}
	tell(Progress{Step: StepStarted, Note: "pid " + strconv.Itoa(c.pid)})
	defer context.AfterFunc(ctx, c.interrupt)()
	if err := c.talk(ctx, tell); err != nil {
		return nil, c.giveUp(err)
	}
	return &Successor{PID: c.pid, link: c.link}, nil
}

// candidate is a new process before it has taken over.
type candidate struct {
	options *Options
	process *os.Process
	pid     int
	link    *link
	ended   <-chan *os.ProcessState // capacity 1
}

// startSuccessor starts the program with its end of the link as descriptor 3. The process
// stays in this process group: so the keys of a terminal and a service manager reach
// both.
func startSuccessor(o *Options) (*candidate, error) {
	ours, theirs, err := newPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	cmd := exec.Command(o.Path, o.Args...)
	cmd.Env = append(without(o.Environ, upgradeVariable), upgradeVariable+"="+strconv.Itoa(firstInherited))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.ExtraFiles = []*os.File{theirs}
	wait, err := o.Start(cmd)
	if err != nil {
		ours.close()
		return nil, fmt.Errorf("the new process cannot be started: %w", err)
	}
	ended := make(chan *os.ProcessState, 1)
	go func() { ended <- wait() }() // ends with the new process, or with this one
	return &candidate{options: o, process: cmd.Process, pid: cmd.Process.Pid, link: ours, ended: ended}, nil
}

// interrupt ends the present wait for the new process and all later ones. The other
// direction stays open, for a last message.
func (c *candidate) interrupt() {
	_ = c.link.unix.CloseRead() // fails if the link is closed, and then nothing waits
}

// talk is the conversation up to the point where the new process serves.
func (c *candidate) talk(ctx context.Context, tell func(Progress)) error {
	limit, err := c.greet(ctx)
	if err != nil {
		return err
	}
	if err := c.awaitReady(ctx, limit, tell); err != nil {
		return err
	}
	tell(Progress{Step: StepTaking})
	if err := c.handOver(ctx); err != nil {
		return err
	}
	// The new process serves. From here on nothing is undone: if it cannot be told, it
	// will see the end of the link.
	c.options.Over(c.pid)
	_ = c.link.send(&message{Kind: kindOver})
	tell(Progress{Step: StepOver, Note: "pid " + strconv.Itoa(c.pid)})
	return nil
}

// greet exchanges hellos and returns how long the new process may take.
func (c *candidate) greet(ctx context.Context) (time.Duration, error) {
	hello, err := c.receive(ctx, helloLimit, "said nothing")
	if err != nil {
		return 0, err
	}
	if err := hello.speaks(); err != nil {
		return 0, err
	}
	limit := min(time.Duration(min(hello.Limit, maxBoot.Milliseconds()))*time.Millisecond, maxBoot)
	return limit, c.link.send(&message{
		Kind: kindHello, Oldest: oldestProtocol, Newest: newestProtocol,
		Program: c.options.Version, PID: os.Getpid(), Workers: c.options.Workers, Ports: c.options.Ports,
	})
}

// awaitReady passes progress on until the new process asks for the listeners.
func (c *candidate) awaitReady(ctx context.Context, limit time.Duration, tell func(Progress)) error {
	deadline := time.Now().Add(limit + bootGrace)
	for {
		m, err := c.receive(ctx, time.Until(deadline), "was not ready")
		switch {
		case err != nil:
			return err
		case m.Kind == kindReady:
			return nil
		case m.Kind == kindProgress:
			tell(Progress{Step: m.Step, Worker: m.Worker, Note: m.Note, Done: m.Done, Total: m.Total})
		default:
			return fmt.Errorf("it said %q before it was ready", m.Kind)
		}
	}
}

// handOver sends the listeners and waits until the new process serves on them.
func (c *candidate) handOver(ctx context.Context) error {
	notes, descriptors, err := c.options.Listeners.notes()
	if err != nil {
		return err
	}
	err = c.link.send(&message{Kind: kindListeners, Sockets: notes}, descriptors...)
	closeDescriptors(descriptors)
	if err != nil {
		return err
	}
	m, err := c.receive(ctx, takeLimit, "did not use the listeners")
	if err == nil && m.Kind != kindServing {
		err = fmt.Errorf("it said %q in place of serving", m.Kind)
	}
	return err
}

// receive returns the next message. Its errors tell what the new process did, not the
// error of the connection.
func (c *candidate) receive(ctx context.Context, within time.Duration, otherwise string) (*message, error) {
	m, files, err := c.link.receive(time.Now().Add(within))
	closeAll(files)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err == nil && m.Kind == kindFailed:
		return nil, &RefusedError{Reason: m.Error, Faults: m.Faults}
	case err == nil:
		return m, nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, fmt.Errorf("it %s within %v", otherwise, within.Round(time.Second))
	case errors.Is(err, errForeign):
		return nil, err
	}
	return nil, errGone
}

// errGone means that the link has ended without a message.
var errGone = errors.New("it ended before it was ready")

// giveUp ends the new process, whatever it is doing, and tells it why.
func (c *candidate) giveUp(why error) error {
	// The new process may be about to serve: this message comes before the end of the
	// link, which alone would mean that this process has died.
	_ = c.link.send(&message{Kind: kindFailed, Error: why.Error()})
	if state := c.end(why); errors.Is(why, errGone) {
		how := ""
		if state != nil { // below a service manager it is not known here
			how = fmt.Sprintf(" (%s)", state)
		}
		// The new process writes to the same stderr as this one, which cannot read it.
		why = fmt.Errorf("%w%s; if it said why, that is in the log of the running cabrank", why, how)
	}
	c.link.close()
	return fmt.Errorf("the new process (pid %d) was given up: %w", c.pid, why)
}

// end waits for a process that gives up by itself, asks any other to end, and kills one
// that does not. The state is nil if even that takes too long, or if only another process
// learns it (Start).
func (c *candidate) end(why error) *os.ProcessState {
	if _, said := errors.AsType[*RefusedError](why); said || errors.Is(why, errGone) {
		if state, ended := c.awaitEnd(c.options.EndLimit); ended {
			return state
		}
	}
	// Signals to a process that has ended fail, which does no harm.
	_ = c.process.Signal(syscall.SIGTERM)
	_ = c.process.Signal(syscall.SIGCONT) // a stopped process gets TERM only then
	if state, ended := c.awaitEnd(c.options.EndLimit); ended {
		return state
	}
	_ = c.process.Kill()
	state, _ := c.awaitEnd(killLimit)
	return state
}

func (c *candidate) awaitEnd(limit time.Duration) (state *os.ProcessState, ended bool) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case state := <-c.ended:
		return state, true
	case <-timer.C:
		return nil, false
	}
}
