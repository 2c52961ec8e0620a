package testbed

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// stopTime bounds how long a process may take to end after SIGTERM.
const stopTime = 5 * time.Second

// Child is a process of a run, pinned to cores and in a group of its own.
type Child struct {
	Shown string // the command as one would type it

	cmd    *exec.Cmd
	out    bytes.Buffer // stdout
	err    tail         // stderr
	ended  chan struct{}
	stopMe sync.Once
}

// Start runs a command in a folder (where no configuration of anybody lies), on some cores (as taskset counts them), with
// settings beside the environment of this process.
func Start(dir, cores string, env, command []string) (*Child, error) {
	c := &Child{ended: make(chan struct{}), Shown: strings.Join(append(append(env, "taskset", "-c", cores), command...), " ")}
	c.cmd = exec.Command("taskset", append([]string{"-c", cores}, command...)...)
	c.cmd.Dir = dir
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

// PID is that of the process itself: taskset becomes the command.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Said is the end of what the process wrote to stderr.
func (c *Child) Said() string { return c.err.String() }

// Stop ends the process and what it has started, and returns its output.
func (c *Child) Stop() []byte {
	c.stopMe.Do(func() {
		c.cmd.Process.Signal(syscall.SIGTERM) //nolint:errcheck // it may have ended
		late := time.NewTimer(stopTime)
		defer late.Stop()
		select {
		case <-c.ended:
		case <-late.C:
		}
		syscall.Kill(-c.PID(), syscall.SIGKILL) //nolint:errcheck // usually nothing is left
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
