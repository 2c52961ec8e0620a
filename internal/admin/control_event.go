package admin

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// Event is one line of the answer to a command.
//
// Shape: any number of lines with a Step, then one with Done or Error, which is
// the last. Fields without a value are absent. docs/control.md lists the steps.
type Event struct {
	Time      time.Time `json:"time"`
	Operation string    `json:"operation"` // restart, drain, scale, reload, upgrade or stop
	Step      string    `json:"step,omitempty"`
	Worker    string    `json:"worker,omitempty"`
	Completed int       `json:"completed,omitempty"` // of Total
	Total     int       `json:"total,omitempty"`
	Note      string    `json:"note,omitempty"`

	// LimitSeconds is the longest time that what begins now can take.
	LimitSeconds float64 `json:"limit_seconds,omitempty"`

	// CallsCut is in the last line: how many calls were ended because they had not
	// ended in time, or nobody wanted to wait for them.
	CallsCut int `json:"calls_cut,omitempty"`

	Reload *Reload  `json:"reload,omitempty"`
	Done   bool     `json:"done,omitempty"`
	Error  string   `json:"error,omitempty"`
	Faults []string `json:"faults,omitempty"` // of a configuration that was refused, one line each

	misuse bool // the error is one of the request
}

// Text is the event in words: "1/4 draining worker-2 (3 calls)".
func (e Event) Text() string {
	var words []string
	if e.Total > 0 {
		words = append(words, fmt.Sprintf("%d/%d", e.Completed, e.Total))
	}
	for _, word := range []string{e.Step, e.Worker} {
		if word != "" {
			words = append(words, word)
		}
	}
	if e.Note != "" {
		words = append(words, "("+e.Note+")")
	}
	return strings.Join(words, " ")
}

// MisuseError says that a request makes no sense here: nothing was begun.
type MisuseError struct{ Reason string }

// Error implements error.
func (e *MisuseError) Error() string { return e.Reason }

// FaultsError says that a configuration was refused and nothing changed.
type FaultsError struct {
	Reason string
	Faults []string // one line each
}

// Error implements error.
func (e *FaultsError) Error() string { return e.Reason }

// ending is the last event of an operation that ended with err.
func ending(operation string, err error) Event {
	end := Event{Time: time.Now().UTC(), Operation: operation, Done: err == nil}
	if err == nil {
		return end
	}
	end.Error = err.Error()
	if faults, ok := errors.AsType[*FaultsError](err); ok {
		end.Faults = faults.Faults
	}
	_, end.misuse = errors.AsType[*MisuseError](err)
	return end
}

// maxEvents is how many events a Journal keeps. A roll of 100 workers makes
// some 600; whoever reads so slowly misses the oldest.
const maxEvents = 1000

// Journal keeps the events of what goes on for any number of readers, each at
// its own pace: nobody who writes waits for one who reads.
//
// Concurrency: all methods may be called from anywhere.
type Journal struct {
	mu      sync.Mutex
	events  []Event
	first   int           // number of events[0]
	closed  bool          // nothing is added any more
	changed chan struct{} // closed by the next change
}

// NewJournal returns an empty journal.
func NewJournal() *Journal { return &Journal{changed: make(chan struct{})} }

// Add appends an event and gives it the time, if it has none. An event after
// the last one is dropped if the journal is that of one operation.
func (j *Journal) Add(e Event) {
	if e.Time.IsZero() {
		e.Time = time.Now().UTC()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return
	}
	j.events = append(j.events, e)
	if len(j.events) > maxEvents {
		j.events = j.events[1:]
		j.first++
	}
	j.tell()
}

// Run does something that takes time and has the journal tell of it: each step,
// and how it ended. also, if not nil, is told the same. A step with CallsCut is none:
// its number is told with the end.
func (j *Journal) Run(operation string, also func(Event), do func(tell func(Event)) error) error {
	tell := func(e Event) {
		e.Operation, e.Time = operation, time.Now().UTC()
		j.Add(e)
		if also != nil {
			also(e)
		}
	}
	cut := 0
	err := do(func(e Event) {
		if cut += e.CallsCut; e.CallsCut == 0 {
			tell(e)
		}
	})
	end := ending(operation, err)
	end.CallsCut = cut
	tell(end)
	return err
}

// close ends the journal.
func (j *Journal) close() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closed = true
	j.tell()
}

func (j *Journal) tell() {
	close(j.changed)
	j.changed = make(chan struct{})
}

// reading is what a reader finds.
type reading struct {
	events  []Event
	next    int             // where to go on
	closed  bool            // nothing will follow
	changed <-chan struct{} // closed when there is more
}

// from returns the events with the numbers from n on that are still there.
func (j *Journal) from(n int) reading {
	j.mu.Lock()
	defer j.mu.Unlock()
	skip := min(max(0, n-j.first), len(j.events))
	found := append([]Event(nil), j.events[skip:]...)
	return reading{events: found, next: j.first + len(j.events), closed: j.closed, changed: j.changed}
}

// end returns the number that the next event will have.
func (j *Journal) end() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.first + len(j.events)
}
