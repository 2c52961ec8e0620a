package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// child is a process of a run, pinned to a core and in a group of its own.
type child struct {
	cmd    *exec.Cmd
	shown  string       // the command as one would type it
	out    bytes.Buffer // stdout
	err    tail         // stderr
	ended  chan struct{}
	stopMe sync.Once
}

// start runs a command on some cores (as taskset counts them) with settings
// beside the environment of the runner.
func (r *rig) start(cores string, env, command []string) (*child, error) {
	c := &child{ended: make(chan struct{}), shown: strings.Join(append(append(env, "taskset", "-c", cores), command...), " ")}
	c.cmd = exec.Command("taskset", append([]string{"-c", cores}, command...)...)
	c.cmd.Dir = r.dir // no configuration file of anybody lies there
	c.cmd.Env = append(os.Environ(), env...)
	c.cmd.Stdout, c.cmd.Stderr = &c.out, &c.err
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { // ends with the process; stop waits for it
		c.cmd.Wait() //nolint:errcheck // how a killed peer exits does not matter
		close(c.ended)
	}()
	return c, nil
}

// pid is the process itself: taskset becomes the command.
func (c *child) pid() int { return c.cmd.Process.Pid }

// said is the end of what the process wrote to stderr.
func (c *child) said() string { return c.err.String() }

// stop ends the process and what it has started, and returns its output.
func (c *child) stop() []byte {
	c.stopMe.Do(func() {
		c.cmd.Process.Signal(syscall.SIGTERM) //nolint:errcheck // it may have ended
		late := time.NewTimer(stopTime)
		defer late.Stop()
		select {
		case <-c.ended:
		case <-late.C:
		}
		syscall.Kill(-c.pid(), syscall.SIGKILL) //nolint:errcheck // usually nothing is left
		<-c.ended
	})
	return c.out.Bytes()
}

// tail keeps the last bytes of what is written to it.
type tail struct {
	mu sync.Mutex
	b  []byte
}

// tailBytes is enough for the lines in which a proxy says why it ends.
const tailBytes = 4096

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if len(t.b) > tailBytes {
		t.b = append(t.b[:0], t.b[len(t.b)-tailBytes:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.b)
}
