package testbed

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/cabrank/cabrank/internal/process"
)

const (
	stopTime = 5 * time.Second // bounds how long a process may take to end after SIGTERM
	// outputTime bounds how long the output of a process is waited for when it has
	// ended: what it has started may have it, too.
	outputTime = time.Second
)

// Program is what Launch starts.
type Program struct {
	Dir     string   // where it runs; empty: where this process does
	Cores   string   // those that it is pinned to, as taskset counts them; empty: none
	Env     []string // beside the environment of this process
	Command []string
	// Talk has pipes for stdin and stdout, Child.In and Child.Out. Otherwise stdout goes
	// where stderr does, of which the end is kept.
	Talk bool
	// Network has it begin in a network namespace of its own and, for whom is not root,
	// in a user namespace where it is.
	Network bool
	// Log is a file to which what the end is kept of is appended, mostLog bytes at most;
	// empty: there is none.
	Log    string
	Keeper *Keeper // ends the program if this process dies; nil: nobody does
}

// Child is a process of a run, in a group of its own.
type Child struct {
	// In and Out are there if the program talks: its stdin, and its stdout, which can be
	// read to its end when the process has ended, until Kill.
	In  io.WriteCloser
	Out io.ReadCloser

	cmd    *exec.Cmd
	keeper *Keeper
	err    output // stderr
	ended  chan struct{}
	stopMe sync.Once
}

// Launch starts a program.
func Launch(p Program) (*Child, error) {
	command := p.Command
	if p.Cores != "" {
		command = append([]string{"taskset", "-c", p.Cores}, command...)
	}
	c := &Child{ended: make(chan struct{}), keeper: p.Keeper}
	c.cmd = exec.Command(command[0], command[1:]...)
	c.cmd.Dir = p.Dir
	c.cmd.Env = append(os.Environ(), p.Env...)
	c.cmd.Stdout, c.cmd.Stderr = &c.err, &c.err
	if p.Log != "" {
		var err error
		if c.err.file, err = os.OpenFile(p.Log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644); err != nil {
			return nil, err
		}
	}
	c.cmd.WaitDelay = outputTime
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if p.Network {
		if err := ownNetwork(c.cmd.SysProcAttr); err != nil {
			return nil, err
		}
	}
	if p.Talk {
		end, err := c.talk()
		if err != nil {
			return nil, err
		}
		defer end.Close()
	}
	if err := c.cmd.Start(); err != nil {
		_ = c.err.file.Close()
		return nil, err
	}
	p.Keeper.watch(c.PID())
	go func() { // ends with the process; stop waits for it
		c.cmd.Wait() //nolint:errcheck // how a killed peer exits does not matter
		_ = c.err.file.Close()
		close(c.ended)
	}()
	return c, nil
}

// talk makes the pipes, and returns the end of the process, which it inherits. That of a
// StdoutPipe would be closed when the process has ended, with what is still in it.
func (c *Child) talk() (end *os.File, err error) {
	if c.In, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	c.Out, end, err = os.Pipe()
	c.cmd.Stdout = end
	return end, err
}

// PID is that of the process itself: taskset becomes the command.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Said is the end of what the process wrote to stderr.
func (c *Child) Said() string { return c.err.String() }

// Ended is closed when the process has ended.
func (c *Child) Ended() <-chan struct{} { return c.ended }

// Exit says how the process has ended, as "exit status 1", and what it and those of
// its children that it waited for have used; it waits for the end.
func (c *Child) Exit() (how string, cpu time.Duration) {
	<-c.ended
	state := c.cmd.ProcessState
	if state == nil {
		return "lost", 0
	}
	return state.String(), state.UserTime() + state.SystemTime()
}

// Signal sends a signal to the process and all that it has started.
func (c *Child) Signal(sig syscall.Signal) error {
	select {
	case <-c.ended:
		return os.ErrProcessDone
	default:
		return syscall.Kill(-c.PID(), sig)
	}
}

// Stop ends the process and what it has started, also what stands still.
func (c *Child) Stop() {
	c.stopMe.Do(func() {
		process.Group(c.PID()).Terminate()
		c.End(stopTime)
	})
}

// End gives the process some time to end, and ends it then, with what it has started.
func (c *Child) End(patience time.Duration) {
	select {
	case <-c.ended:
	case <-time.After(patience):
	}
	c.Kill()
}

// Kill ends the process and what it has started at once, by SIGKILL.
func (c *Child) Kill() {
	process.Group(c.PID()).Kill() // usually nothing is left
	<-c.ended
	if c.Out != nil {
		c.Out.Close()
	}
	c.keeper.forget(c.PID())
}

const (
	tailBytes = 4096    // enough for the lines in which a proxy says why it ends
	mostLog   = 1 << 20 // bounds what one process leaves in a file
)

// output keeps the last bytes of what is written to it, and in a file the first ones.
type output struct {
	file *os.File // nil: there is none

	mu   sync.Mutex
	kept int // bytes in the file
	last []byte
}

// Write never fails: a process does not end for a disk that is full.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	first := p[:min(len(p), mostLog-o.kept)]
	o.kept += len(first)
	_, _ = o.file.Write(first)
	o.last = append(o.last, p...)
	if len(o.last) > tailBytes {
		o.last = append(o.last[:0], o.last[len(o.last)-tailBytes:]...)
	}
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.last)
}

// Wait returns after a time, or when ctx ends, with its error.
func Wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Keeper ends processes when the one that started them dies, by whatever: SIGKILL
// leaves nobody else to do it. It is the process `cabrank-lab keeper`.
//
// Life: StartKeeper; ended by Close. Concurrency: any.
type Keeper struct {
	mu    sync.Mutex
	child *Child
}

// StartKeeper starts one; lab is the path of the program.
func StartKeeper(lab string) (*Keeper, error) {
	child, err := Launch(Program{Command: []string{lab, "keeper"}, Talk: true})
	if err != nil {
		return nil, err
	}
	k := &Keeper{child: child}
	if _, err := bufio.NewReader(child.Out).ReadString('\n'); err != nil { // it ignores signals from here on
		k.Close()
		return nil, fmt.Errorf("%s keeper has ended: %w", lab, err)
	}
	return k, nil
}

// watch has the keeper end a process group, and forget one that was ended.
func (k *Keeper) watch(group int)  { k.say("add", group) }
func (k *Keeper) forget(group int) { k.say("del", group) }

func (k *Keeper) say(verb string, group int) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	fmt.Fprintln(k.child.In, verb, group)
}

// Close ends the keeper, and with it what it has not been told to forget.
func (k *Keeper) Close() {
	k.mu.Lock()
	k.child.In.Close()
	k.mu.Unlock()
	<-k.child.Ended()
	k.child.Out.Close()
}
