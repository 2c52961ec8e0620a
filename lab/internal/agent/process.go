package agent

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// Process is a generator that was started.
//
// Life: Start; Ready; Begin; Wait; Close in any case. Stop may come at any time behind
// Ready. Concurrency: Live and Stop by anybody, the others by one goroutine.
type Process struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *json.Decoder
	said tail

	stop sync.Once
	mu   sync.Mutex // guards live
	live traffic.Live
}

// Start starts a generator by a command, such as `cabrank lab agent`, and gives it its
// job. It is in a process group of its own: Ctrl-C is for who has started it.
//
// Errors: one line, if it cannot be started.
func Start(command []string, job Job) (*Process, error) {
	p := &Process{cmd: exec.Command(command[0], command[1:]...)} //nolint:noctx // a command of this program; Close ends it
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.Stderr = &p.said
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = json.NewDecoder(bufio.NewReader(out))
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("a generator cannot be started: %w", err)
	}
	// A generator that has ended already is found by Ready.
	_ = send(json.NewEncoder(p.in), job)
	return p, nil
}

// PID is that of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Ready waits until the generator can begin, and says how it calls.
//
// Errors: one line that says why it cannot, such as a target that is not there.
func (p *Process) Ready() (how string, err error) {
	var l line
	if err := receive(p.out, &l); err != nil {
		return "", p.broken(err)
	}
	if l.Answer != nil {
		return "", errors.New(l.Answer.Error)
	}
	return l.Ready, nil
}

// Begin has the load begin at a moment.
func (p *Process) Begin(at time.Time) { _ = send(json.NewEncoder(p.in), begin{at}) } // Wait finds what fails

// Stop has no more calls start.
func (p *Process) Stop() { p.stop.Do(func() { p.in.Close() }) }

// Live returns how the load went about a second ago.
func (p *Process) Live() traffic.Live {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.live
}

// Wait returns what the load has come to.
//
// Errors: one line, if there is no record.
func (p *Process) Wait() (*Answer, error) {
	for {
		var l line
		if err := receive(p.out, &l); err != nil {
			return nil, p.broken(err)
		}
		switch {
		case l.Live != nil:
			p.mu.Lock()
			p.live = *l.Live
			p.mu.Unlock()
		case l.Answer != nil && l.Answer.Error != "":
			return nil, errors.New(l.Answer.Error)
		case l.Answer != nil && l.Answer.Record != nil:
			return l.Answer, nil
		}
	}
}

// broken says why a generator has not answered.
func (p *Process) broken(err error) error {
	if said := p.said.last(); said != "" {
		return fmt.Errorf("a generator has ended: %s", said)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("a generator has ended without a word")
	}
	return fmt.Errorf("a generator has said what is no answer: %w", err)
}

// Close ends the process, if it has not ended, and waits for that.
func (p *Process) Close() {
	p.Stop()
	late := time.AfterFunc(time.Second, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	_ = p.cmd.Wait() // how it ended is known from what it said
}

// mostSaid is how many bytes of what a generator says are kept.
const mostSaid = 2000

// tail keeps the end of what was written.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	if over := len(t.text) - mostSaid; over > 0 {
		t.text = t.text[over:]
	}
	return len(b), nil
}

// last is the last line.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := strings.TrimSpace(string(t.text))
	return text[strings.LastIndexByte(text, '\n')+1:]
}
