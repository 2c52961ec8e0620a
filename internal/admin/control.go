package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"
)

const (
	// maxControlBody bounds a request: the command of a restart is the only
	// thing in one that can be long.
	maxControlBody = 256 << 10

	// maxControlConns bounds who asks and watches at a time.
	maxControlConns = 64

	// maxOperations bounds the commands at work. Each is answered by one
	// goroutine that waits, so the bound is against loops of impatient scripts.
	maxOperations = 32

	// eventLimit is how long a client may take to read what was written to it.
	eventLimit = 10 * time.Second
)

// Observer tells how things are.
type Observer interface {
	// Status returns what is known now. It must return at once.
	Status() Status
	// Live returns what is counted. It must return at once.
	Live() Live
}

// Fleet is what can be asked for about workers and upstreams.
//
// The methods return when what was asked for is done or has failed, tell what
// happens meanwhile, and may be called at the same time. A *MisuseError says
// that the request makes no sense here, and comes before anything was told. ctx
// ends when cabrank stops, not when the client leaves.
type Fleet interface {
	// Restart replaces every worker, after a reload of the configuration.
	Restart(ctx context.Context, request RestartRequest, tell func(Event)) error

	// Drain replaces one worker, or keeps calls from one upstream.
	Drain(ctx context.Context, request DrainRequest, tell func(Event)) error

	// Scale changes the number of workers.
	Scale(ctx context.Context, request ScaleRequest, tell func(Event)) error
}

// Process is what can be asked for about cabrank itself. What is said of Fleet
// holds here too.
type Process interface {
	// Reload takes what has changed in the configuration. The result is told as
	// an Event with Reload; a configuration that is refused is a *FaultsError.
	Reload(ctx context.Context, request ReloadRequest, tell func(Event)) error

	// Upgrade has a new cabrank take over. It returns nil when that one has the
	// listeners.
	Upgrade(ctx context.Context, request UpgradeRequest, tell func(Event)) error

	// Stop ends cabrank. It returns when only the control is left.
	Stop(ctx context.Context, request StopRequest, tell func(Event)) error
}

// RestartRequest is the body of POST /v1/restart.
type RestartRequest struct {
	Command []string `json:"command,omitempty"` // of the workers; absent: as it is
	Force   bool     `json:"force,omitempty"`   // do not wait for calls
}

// DrainRequest is the body of POST /v1/drain.
type DrainRequest struct {
	Target string `json:"target"`          // a worker's name or an upstream's address
	Undo   bool   `json:"undo,omitempty"`  // calls may go to the upstream again
	Force  bool   `json:"force,omitempty"` // do not wait for the worker's calls
}

// ScaleRequest is the body of POST /v1/scale.
type ScaleRequest struct {
	Workers int  `json:"workers,omitempty"`
	Auto    bool `json:"auto,omitempty"` // in place of Workers: as the configuration says
}

// check refuses what can be read in two ways: nothing is begun then.
func (r ScaleRequest) check() error {
	if r.Auto && r.Workers != 0 {
		return errors.New("workers and auto contradict each other: one of them is needed")
	}
	return nil
}

// check refuses what can be read in two ways: nothing is begun then.
func (r DrainRequest) check() error {
	if r.Undo && r.Force {
		return errors.New("undo and force contradict each other: nothing is cut when an upstream gets calls again")
	}
	return nil
}

// ReloadRequest is the body of POST /v1/reload. It has no fields.
type ReloadRequest struct{}

// UpgradeRequest is the body of POST /v1/upgrade.
type UpgradeRequest struct {
	Workers int `json:"workers,omitempty"` // of the new cabrank until the old one has gone; 0: as configured
}

// StopRequest is the body of POST /v1/stop.
type StopRequest struct {
	Now bool `json:"now,omitempty"` // do not wait for calls
}

// Controls are the parts of a cabrank that its control asks.
type Controls struct {
	Observer Observer
	Fleet    Fleet
	Process  Process
	Journal  *Journal // of everything that goes on, whoever asked for it
}

// ServeControl answers on listener, JSON over HTTP (docs/control.md). It
// decides nothing: it passes on what was asked and what came of it.
//
// A command goes on when its client leaves. Shutdown ends the contexts of all
// commands and waits for the clients to be told.
func ServeControl(listener net.Listener, controls Controls, log *slog.Logger) *Server {
	living, end := context.WithCancel(context.Background())
	c := &control{Controls: controls, log: log, living: living, places: make(chan struct{}, maxOperations)}
	s := serve(listener, c.routes(), maxControlConns, log)
	s.http.RegisterOnShutdown(end)
	return s
}

// control answers requests.
type control struct {
	Controls

	log    *slog.Logger
	living context.Context //nolint:containedctx // it is that of the operations, which outlive their requests
	places chan struct{}   // has one entry for each operation
}

func (c *control) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/status", c.status)
	mux.HandleFunc("GET /v1/live", c.live)
	mux.HandleFunc("GET /v1/events", c.watch)
	mux.HandleFunc("POST /v1/restart", operation(c, "restart", c.Fleet.Restart))
	mux.HandleFunc("POST /v1/drain", operation(c, "drain", c.Fleet.Drain))
	mux.HandleFunc("POST /v1/scale", operation(c, "scale", c.Fleet.Scale))
	mux.HandleFunc("POST /v1/reload", operation(c, "reload", c.Process.Reload))
	mux.HandleFunc("POST /v1/upgrade", operation(c, "upgrade", c.Process.Upgrade))
	mux.HandleFunc("POST /v1/stop", operation(c, "stop", c.Process.Stop))
	return mux
}

func (c *control) status(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, c.Observer.Status())
}

func (c *control) live(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, c.Observer.Live())
}

// watch sends everything that goes on from now until the client leaves.
func (c *control) watch(w http.ResponseWriter, r *http.Request) {
	s, now := newStream(w), c.Journal.end() // before the header, which tells the client that it sees all
	s.begin(http.StatusOK)
	s.follow(c.Journal, now, r.Context().Done(), c.living.Done())
}

// operation answers a command whose request is a T.
func operation[T any](c *control, name string, do func(context.Context, T, func(Event)) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var request T
		err := readJSON(w, r, &request)
		if checked, ok := any(request).(interface{ check() error }); ok && err == nil {
			err = checked.check()
		}
		if err != nil {
			writeJSON(w, http.StatusBadRequest, ending(name, err))
			return
		}
		select {
		case c.places <- struct{}{}:
		default:
			writeJSON(w, http.StatusTooManyRequests, ending(name, fmt.Errorf("%d commands are at work already", maxOperations)))
			return
		}
		c.log.Info("control", "command", name)
		told := NewJournal()
		// It ends by itself, or when Shutdown has ended living.
		go func() {
			defer func() { <-c.places }()
			_ = c.Journal.Run(name, told.Add, func(tell func(Event)) error { return do(c.living, request, tell) }) // told has it
			told.close()
		}()
		newStream(w).follow(told, 0, r.Context().Done(), nil)
	}
}

// stream writes events to one client.
type stream struct {
	w     http.ResponseWriter
	rc    *http.ResponseController
	begun bool
}

// newStream lifts the limits of a page, which would end a long answer: each
// write has its own.
func newStream(w http.ResponseWriter) *stream {
	s := &stream{w: w, rc: http.NewResponseController(w)}
	_ = s.rc.SetReadDeadline(time.Time{}) // what reads on only sees the client leave
	return s
}

// begin sends the header.
func (s *stream) begin(status int) {
	s.begun = true
	s.w.Header().Set("Content-Type", "application/x-ndjson")
	_ = s.rc.SetWriteDeadline(time.Now().Add(eventLimit))
	s.w.WriteHeader(status)
	_ = s.rc.Flush() // who cannot be written to is seen by the next event
}

// follow sends what the journal has from event n on, until it is closed or one
// of the channels is.
func (s *stream) follow(from *Journal, n int, left, stopped <-chan struct{}) {
	for {
		now := from.from(n)
		n = now.next
		if !s.write(now.events) || now.closed {
			return
		}
		select {
		case <-now.changed:
		case <-left:
			return
		case <-stopped:
			return
		}
	}
}

// write sends events and reports whether the client still takes them.
func (s *stream) write(events []Event) bool {
	if len(events) == 0 {
		return true
	}
	if !s.begun {
		s.begin(statusOf(events[0]))
	}
	_ = s.rc.SetWriteDeadline(time.Now().Add(eventLimit))
	encoder := json.NewEncoder(s.w)
	for _, e := range events {
		if encoder.Encode(e) != nil { //nolint:errchkjson // plain data: what fails is the client
			return false
		}
	}
	return s.rc.Flush() == nil
}

// statusOf is 200 for everything that was begun: how it ends stands in the last
// line.
func statusOf(first Event) int {
	if first.misuse {
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// readJSON reads a body that is one JSON object of known fields, or empty.
func readJSON(w http.ResponseWriter, r *http.Request, into any) error {
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxControlBody))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	switch {
	case errors.Is(err, io.EOF): // nothing is asked for in particular
		return nil
	case err != nil:
		return fmt.Errorf("request body: %w", err)
	case decoder.More():
		return errors.New("request body: more than one JSON value")
	}
	return nil
}

// writeJSON answers with one JSON value and a line end.
func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) //nolint:errchkjson // plain data; a client that has gone needs no answer
}
