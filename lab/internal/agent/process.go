package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/cabrank/cabrank/lab/internal/testbed"
)

// Process is a generator that was started.
//
// Life: Start; Ready; Begin; Wait; Close in any case. Stop may come at any time behind
// Ready. Concurrency: Stop by anybody, the others by one goroutine.
type Process struct {
	child *testbed.Child
	in    *json.Encoder
	out   *json.Decoder

	stop sync.Once
}

// Start starts a generator by a command, such as `cabrank lab agent`, and gives it its
// job. It is in a process group of its own: Ctrl-C is for who has started it.
//
// Errors: one line, if it cannot be started.
func Start(command []string, job Job) (*Process, error) {
	child, err := testbed.Launch(testbed.Program{Command: command, Talk: true})
	if err != nil {
		return nil, fmt.Errorf("a generator cannot be started: %w", err)
	}
	p := &Process{child: child, in: json.NewEncoder(child.In), out: json.NewDecoder(child.Out)}
	_ = p.in.Encode(job) //nolint:errchkjson,musttag // one that has ended already is found by Ready
	return p, nil
}

// PID is that of the process.
func (p *Process) PID() int { return p.child.PID() }

// Ready waits until the generator can begin, and says how it calls.
//
// Errors: one line that says why it cannot, such as a target that is not there.
func (p *Process) Ready() (how string, err error) {
	var l line
	if err := p.out.Decode(&l); err != nil {
		return "", p.broken(err)
	}
	if l.Answer != nil {
		return "", errors.New(l.Answer.Error)
	}
	return l.Ready, nil
}

// Begin has the load begin at a moment.
func (p *Process) Begin(at time.Time) { _ = p.in.Encode(begin{at}) } //nolint:errchkjson // Wait finds what fails

// Stop has no more calls start.
func (p *Process) Stop() { p.stop.Do(func() { p.child.In.Close() }) }

// Wait returns what the load has come to.
//
// Errors: one line, if there is no record.
func (p *Process) Wait() (*Answer, error) {
	var l line
	err := p.out.Decode(&l)
	switch {
	case err != nil:
		return nil, p.broken(err)
	case l.Answer == nil || l.Answer.Record == nil && l.Answer.Error == "":
		return nil, errors.New("a generator has said what is no answer")
	case l.Answer.Error != "":
		return nil, errors.New(l.Answer.Error)
	}
	return l.Answer, nil
}

func (p *Process) broken(err error) error {
	p.Close() // then all that it has said is there
	if said := strings.TrimSpace(p.child.Said()); said != "" {
		return fmt.Errorf("a generator has ended: %s", said[strings.LastIndexByte(said, '\n')+1:])
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("a generator has ended without a word")
	}
	return fmt.Errorf("a generator has said what is no answer: %w", err)
}

// Close ends the process, if it has not ended, and waits for that.
func (p *Process) Close() {
	p.Stop()
	p.child.End(time.Second)
}
