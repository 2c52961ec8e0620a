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
	// helloLimit is how long the new process may take to say its first word. A
	// program that is no cabrank, or one from before upgrades, never does.
	helloLimit = 30 * time.Second
	// bootGrace is added to the time that the new process gives itself to be
	// ready, so that its own words are heard before it is given up.
	bootGrace = 10 * time.Second
	// maxBoot bounds that time, whatever it says.
	maxBoot = time.Hour
	// takeLimit is how long the new process may take to accept on listeners that
	// it has been given.
	takeLimit = 30 * time.Second
	// killLimit is how long a process may take to die of KILL; only the kernel
	// keeps one for longer.
	killLimit = 2 * time.Second
)

// Options says how a successor is started.
type Options struct {
	Version   string     // of this program, for the other side's messages
	Path      string     // see Program
	Args      []string   // without the program
	Environ   []string   // see Inherited
	Workers   int        // how many the new process begins with; 0: as configured
	Ports     []int      // of the workers of this one, which the new one leaves alone
	Listeners *Listeners // what is handed over

	// Start runs cmd.Start, and returns a function that waits for the end of the
	// process: children belong to whoever reaps them.
	Start func(cmd *exec.Cmd) (wait func() *os.ProcessState, err error)

	// Over is called when the new process accepts connections, before it hears
	// that it is alone from now on: the service manager is told first.
	Over func(pid int)

	// EndLimit is the time between TERM and KILL of a new process that is given
	// up: as long as a process without calls needs to end its workers.
	EndLimit time.Duration
}

// Progress is a step of an upgrade.
type Progress struct {
	Step        string // see the constants
	Worker      string // that it is about, if one
	Note        string // for people
	Done, Total int    // workers of the new process that are ready, and that it waits for
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
// Its connection lets the successor know when this process has ended, so it
// stays open until then: hold on to the Successor and close nothing.
type Successor struct {
	PID  int
	link *link
}

// Upgrade starts the program again and hands the listeners over to it. It
// returns when the new process serves; the caller stops accepting then, and
// drains.
//
// Errors: one line, a *RefusedError if it is the new process's; everything is as it was before, and the new process and its
// workers are gone (or will be: the keeper of a process that had to be killed
// takes 2 s). Ending ctx gives the upgrade up, until the new process serves. It
// takes at most the time that the new process names (bounded by an hour), 72 s,
// and twice EndLimit.
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

// startSuccessor starts the program with its end of the link as descriptor 3. It stays in
// the process group: the keys of a terminal reach both, and a service manager
// finds both in one place.
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

// interrupt ends this wait for the new process and all that follow. The other
// direction stays open, for the last word.
func (c *candidate) interrupt() {
	_ = c.link.unix.CloseRead() // fails if the link is closed, which waits for nothing
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
	// It serves. From here on nothing is undone: if it cannot be told, it will
	// see the end of the link.
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

// handOver sends the listeners and waits until they are used.
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

// receive returns the next message. Its errors tell what has happened rather
// than what the connection says.
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

// errGone says that the link has ended without a word.
var errGone = errors.New("it ended before it was ready")

// giveUp ends the new process, whatever it is doing, and says why.
func (c *candidate) giveUp(why error) error {
	// It may be about to serve: this word comes before the end of the link, which
	// alone would mean that this process has died.
	_ = c.link.send(&message{Kind: kindFailed, Error: why.Error()})
	if state := c.end(why); errors.Is(why, errGone) {
		how := ""
		if state != nil { // below a service manager nobody here learns it
			how = fmt.Sprintf(" (%s)", state)
		}
		// Its stderr is that of this process, and stays so for good: nothing here can read it.
		why = fmt.Errorf("%w%s; if it said why, that is in the log of the running cabrank", why, how)
	}
	c.link.close()
	return fmt.Errorf("the new process (pid %d) was given up: %w", c.pid, why)
}

// end waits for a process that gives up by itself, asks any other to end, and
// kills what does not. The state is nil if even that takes too long, or if another process
// learns it (Start).
func (c *candidate) end(why error) *os.ProcessState {
	if _, said := errors.AsType[*RefusedError](why); said || errors.Is(why, errGone) {
		if state, ended := c.awaitEnd(c.options.EndLimit); ended {
			return state
		}
	}
	// Signals to a process that has ended fail, which is as well.
	_ = c.process.Signal(syscall.SIGTERM)
	_ = c.process.Signal(syscall.SIGCONT) // one that is stopped hears TERM only then
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
