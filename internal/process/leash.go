package process

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

const (
	// leashWriteLimit bounds a write to a keeper that does not read (SIGSTOP).
	// The pipe holds thousands of lines before it matters.
	leashWriteLimit = 100 * time.Millisecond
	// keeperRetry is the pause before a keeper that died is replaced.
	keeperRetry = time.Second
	// keeperPatience is how long open waits for a keeper to begin, and close for a keeper
	// without groups to exit.
	keeperPatience = time.Second
)

// leash is the supervisor's side of the keeper: it starts the keeper, tells it the
// groups, and replaces it when it dies.
type leash struct {
	executable string
	reaper     *reaper
	log        *slog.Logger

	stop chan struct{}
	done chan struct{} // closed when watch has returned; nil before open

	mu     sync.Mutex
	groups map[int]struct{}
	pipe   *os.File // nil while there is no keeper
	cmd    *exec.Cmd
}

func newLeash(executable string, r *reaper, log *slog.Logger) *leash {
	return &leash{
		executable: executable, reaper: r, log: log,
		stop: make(chan struct{}), groups: make(map[int]struct{}),
	}
}

// open starts the keeper. Ended by close.
func (l *leash) open() error {
	if err := l.start(); err != nil {
		return fmt.Errorf("start the keeper: %w", err)
	}
	l.done = make(chan struct{})
	go l.watch()
	return nil
}

// start makes a keeper, tells it all groups, and waits until it has begun: before that, a
// signal that ends cabrank would end the keeper as well, and the workers would stay.
func (l *leash) start() error {
	in, out, err := os.Pipe()
	if err != nil {
		return explainLimit(err)
	}
	defer in.Close()
	begun, begins, err := os.Pipe()
	if err != nil {
		_ = out.Close()
		return explainLimit(err)
	}
	defer begun.Close()
	err = l.launch(in, begins, out)
	_ = begins.Close() // the keeper has it
	if err != nil {
		_ = out.Close()
		return err
	}
	// A slow keeper is better than none, and a dead one is replaced.
	_ = begun.SetReadDeadline(time.Now().Add(keeperPatience))
	_, _ = begun.Read(make([]byte, 1))
	return nil
}

// launch starts a keeper that reads in, writes to begins when it has begun, and is
// told of groups through out. All groups are in the pipe before it starts, for cabrank
// may die at any time after that; changes since then follow.
func (l *leash) launch(in, begins, out *os.File) error {
	told, err := l.list(out)
	if err != nil {
		return err
	}
	cmd := exec.Command(l.executable, "keeper")
	cmd.Stdin, cmd.Stdout = in, begins
	// A session of its own: no signal to cabrank's group or terminal reaches it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := l.reaper.start(cmd); err != nil {
		return explainExec(l.executable, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cmd, l.pipe = cmd, out
	l.tellSince(told)
	select {
	case <-l.stop:
		l.hangUp()
	default:
	}
	return nil
}

// list writes all groups into a pipe that no keeper reads yet, and returns them.
func (l *leash) list(pipe *os.File) (map[int]struct{}, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for group := range l.groups {
		if err := write(pipe, "add", group); err != nil {
			return nil, err
		}
	}
	return maps.Clone(l.groups), nil
}

// tellSince tells the keeper which groups have come and gone since told. l.mu is held.
func (l *leash) tellSince(told map[int]struct{}) {
	for group := range l.groups {
		if _, known := told[group]; !known {
			l.tell("add", group)
		}
	}
	for group := range told {
		if _, left := l.groups[group]; !left {
			l.tell("del", group)
		}
	}
}

// watch replaces the keeper whenever it exits, until stop is closed and the
// last one is gone.
func (l *leash) watch() {
	defer close(l.done)
	for {
		l.reaper.await(l.cmd)
		state := l.reaper.collect(l.cmd)
		l.drop()
		for {
			select {
			case <-l.stop:
				return
			case <-time.After(keeperRetry):
			}
			if err := l.start(); err != nil {
				l.log.Error("keeper cannot be replaced", "error", err)
				continue
			}
			l.log.Warn("keeper replaced", "how", state.String())
			break
		}
	}
}

// add tells the keeper of a group that must not outlive this process.
func (l *leash) add(group int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.groups[group] = struct{}{}
	l.tell("add", group)
}

// del tells the keeper that a group is gone. It comes before the leader is reaped, so
// that the keeper never signals a number that was used again.
func (l *leash) del(group int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.groups, group)
	l.tell("del", group)
}

// tell writes one line. l.mu is held. A keeper that does not take the line is killed;
// watch starts another one, which gets all groups.
func (l *leash) tell(verb string, group int) {
	if l.pipe == nil {
		return
	}
	if err := write(l.pipe, verb, group); err != nil {
		l.log.Warn("keeper cannot be told", "error", err)
		_ = l.cmd.Process.Kill()
		l.hangUp()
	}
}

// write puts one line into a keeper's pipe.
func write(pipe *os.File, verb string, group int) error {
	// Pipes take deadlines; without one the write would still work.
	_ = pipe.SetWriteDeadline(time.Now().Add(leashWriteLimit))
	_, err := fmt.Fprintf(pipe, "%s %d\n", verb, group)
	return err
}

// hangUp closes the pipe. l.mu is held.
func (l *leash) hangUp() {
	if l.pipe != nil {
		_ = l.pipe.Close()
		l.pipe = nil
	}
}

func (l *leash) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hangUp()
}

// close ends the keeper, within twice 1 s. Without groups it exits at once, or is killed
// after 1 s; if KILL did not end some groups, it stays for them.
func (l *leash) close() {
	if l.done == nil {
		return
	}
	close(l.stop)
	l.drop()
	select {
	case <-l.done:
		return
	case <-time.After(keeperPatience):
	}
	l.mu.Lock()
	abandoned, keeper := len(l.groups) > 0, l.cmd.Process
	l.mu.Unlock()
	if abandoned {
		return
	}
	_ = keeper.Kill()
	select {
	case <-l.done:
	case <-time.After(keeperPatience):
	}
}
