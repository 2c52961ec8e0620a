package handover

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// Predecessor is the process from which this one takes over.
//
// Life: given by Inherit; Greet, then Tell any number of times, then Take and
// Serving. Fail may come in place of any of them.
// Concurrency: one goroutine calls the methods, except Gone, which anybody may.
type Predecessor struct {
	// Set by Greet.
	PID     int
	Program string // its version
	Workers int    // how many workers to begin with, 0: as configured
	Ports   []int  // of its workers, until it has ended

	link  *link
	heard chan heard    // messages from read; capacity 1
	gone  chan struct{} // closed when the link has ended

	mu sync.Mutex // for sending
}

// heard is a message with the files that came with it.
type heard struct {
	message *message
	files   []*os.File
}

func newPredecessor(l *link) *Predecessor {
	return &Predecessor{link: l, heard: make(chan heard, 1), gone: make(chan struct{})}
}

// Errors of the new process about the old one.
var (
	errPredecessorGone = errors.New("the process that was to be replaced has ended before it handed over")
	errGivenUp         = errors.New("the process that was to be replaced has given the upgrade up")
)

// Greet exchanges hellos. limit is how long this process may take until Take.
func (p *Predecessor) Greet(version string, limit time.Duration) error {
	err := p.send(&message{
		Kind: kindHello, Oldest: oldestProtocol, Newest: newestProtocol,
		Program: version, PID: os.Getpid(), Limit: limit.Milliseconds(),
	})
	if err != nil {
		close(p.gone)
		return errPredecessorGone
	}
	go p.read() // ends with the link
	hello, err := p.next(helloLimit)
	if err != nil {
		return err
	}
	if err := hello.message.speaks(); err != nil {
		return fmt.Errorf("upgrade from pid %d: %w", hello.message.PID, err)
	}
	p.PID, p.Program, p.Workers, p.Ports = hello.message.PID, hello.message.Program, hello.message.Workers, hello.message.Ports
	return nil
}

// Tell reports a step. If it cannot be sent, Gone will be closed.
func (p *Predecessor) Tell(step Progress) {
	_ = p.send(&message{
		Kind: kindProgress, Step: step.Step, Worker: step.Worker,
		Note: step.Note, Done: step.Done, Total: step.Total,
	})
}

// Take asks for the listeners and adds them to l for its Open.
func (p *Predecessor) Take(l *Listeners) error {
	if err := p.send(&message{Kind: kindReady}); err != nil {
		return errPredecessorGone
	}
	got, err := p.next(takeLimit)
	if err != nil {
		return err
	}
	if got.message.Kind != kindListeners {
		closeAll(got.files)
		return fmt.Errorf("the process that is to be replaced said %q in place of its listeners", got.message.Kind)
	}
	for i, note := range got.message.Sockets {
		s := &socket{name: note.Name, asked: note.Asked, manager: note.Manager}
		if err := l.give(s, got.files[i]); err != nil {
			closeAll(got.files[i+1:])
			return err
		}
	}
	return nil
}

// Serving says that this process accepts connections on the listeners. It returns when
// the old process does not accept any more, or has died: this one goes on alone. An
// error means that the old process has given up the upgrade and goes on itself.
func (p *Predecessor) Serving() error {
	// If this cannot be sent, the last message has come already, or none will.
	_ = p.send(&message{Kind: kindServing})
	if _, err := p.next(takeLimit); errors.Is(err, errGivenUp) {
		return err
	}
	return nil
}

// Fail tells why this process gives up. It ends the link.
func (p *Predecessor) Fail(why error) {
	_ = p.send(&message{Kind: kindFailed, Error: why.Error()})
	p.link.close()
}

// Lost tells why Gone was closed before the listeners were taken.
func (p *Predecessor) Lost() error {
	<-p.gone
	_, err := p.last()
	return err
}

// Gone is closed when the old process has ended, or the link to it.
func (p *Predecessor) Gone() <-chan struct{} { return p.gone }

func (p *Predecessor) send(m *message) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.link.send(m)
}

// next returns the next message, and waits for it at most for within.
func (p *Predecessor) next(within time.Duration) (heard, error) {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case got := <-p.heard:
		return got, got.failure()
	case <-timer.C:
		return heard{}, fmt.Errorf("the process that is to be replaced said nothing within %v", within)
	case <-p.gone:
		return p.last()
	}
}

// last returns the last message of a predecessor that has ended.
func (p *Predecessor) last() (heard, error) {
	select {
	case got := <-p.heard:
		return got, got.failure()
	default:
		return heard{}, errPredecessorGone
	}
}

// failure is an error if the message says that the upgrade was given up.
func (h heard) failure() error {
	if h.message.Kind != kindFailed {
		return nil
	}
	return fmt.Errorf("%w: %s", errGivenUp, h.message.Error)
}

// read reads until the link ends. The other side sends no more than this one waits for,
// so a message that does not fit into heard ends the link, too.
func (p *Predecessor) read() {
	defer close(p.gone)
	for {
		m, files, err := p.link.receive(time.Time{})
		if err != nil {
			return
		}
		select {
		case p.heard <- heard{m, files}:
		default:
			closeAll(files)
			return
		}
	}
}
