package admin

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/relay"
	"github.com/cabrank/cabrank/internal/testkit"
)

// fakeStatus is an Observer.
type fakeStatus Status

func (fakeStatus) Live() Live {
	return NewLive(relay.Stats{Refusals: map[string]uint64{"queue_full": 3}}, time.Now())
}

func (f fakeStatus) Status() Status { return Status(f) }

// fakeFleet answers restarts; each waits for a word on steps before it tells the
// next one, and ends with the words that are errors.
type fakeFleet struct {
	steps   chan any // a string is a step, an error or nil ends
	begun   atomic.Int32
	request atomic.Pointer[RestartRequest]
}

func newFakeFleet() *fakeFleet { return &fakeFleet{steps: make(chan any)} }

func (f *fakeFleet) Restart(ctx context.Context, request RestartRequest, tell func(Event)) error {
	f.request.Store(&request)
	f.begun.Add(1)
	for {
		select {
		case word := <-f.steps:
			if step, ok := word.(string); ok {
				tell(Event{Step: step})
				continue
			}
			err, _ := word.(error)
			return err
		case <-ctx.Done():
			return errors.New("cabrank is stopping")
		}
	}
}

func (*fakeFleet) Drain(_ context.Context, request DrainRequest, _ func(Event)) error {
	return &MisuseError{"there is no " + request.Target}
}

func (*fakeFleet) Scale(_ context.Context, request ScaleRequest, tell func(Event)) error {
	tell(Event{Step: "scaled", Total: request.Workers})
	return nil
}

// fakeProcess refuses to reload and stops at once.
type fakeProcess struct{}

func (fakeProcess) Reload(context.Context, ReloadRequest, func(Event)) error {
	return &FaultsError{"nothing was changed", []string{"c.yml:1: a", "c.yml:2: b"}}
}

func (fakeProcess) Upgrade(context.Context, UpgradeRequest, func(Event)) error { return nil }

func (fakeProcess) Stop(context.Context, StopRequest, func(Event)) error { return nil }

// testControl is a control that listens on a real socket.
type testControl struct {
	*Client

	server  *Server
	fleet   *fakeFleet
	journal *Journal
}

func startControl(t *testing.T) *testControl {
	t.Helper()
	testkit.CheckLeaks(t)
	listener, err := ListenControl(filepath.Join(shortFolder(t), "s"))
	testkit.Must(t, err)
	c := &testControl{Client: NewClient(listener.Path()), fleet: newFakeFleet(), journal: NewJournal()}
	c.server = ServeControl(listener, Controls{
		Observer: fakeStatus{PID: 7, Workers: []WorkerStatus{{Name: "worker-1"}}},
		Fleet:    c.fleet, Process: fakeProcess{}, Journal: c.journal,
	}, slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		c.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		err := c.server.Shutdown(ctx)
		testkit.Want(t, err == nil, "shutdown: %v", err)
		testkit.Want(t, !exists(listener.Path()), "the socket file is left")
	})
	return c
}

// following is a client that waits for the end of a command.
type following struct {
	events chan Event
	err    chan error
	leave  context.CancelFunc
}

func (c *testControl) restart(t *testing.T, request RestartRequest) following {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	f := following{events: make(chan Event, 100), err: make(chan error, 1), leave: leave}
	before := c.fleet.begun.Load()
	go func() { f.err <- c.Do(ctx, "restart", request, func(_ []byte, e Event) { f.events <- e }) }()
	testkit.Eventually(t, 20*time.Second, "the restart to begin", func() bool { return c.fleet.begun.Load() > before })
	return f
}

func TestControlStatus(t *testing.T) {
	c := startControl(t)
	status, raw, err := c.Status(t.Context())
	testkit.Must(t, err)
	testkit.Want(t, status.PID == 7 && len(status.Workers) == 1 && strings.Contains(string(raw), `"pid":7`), "got %+v from %s", status, raw)
}

// Each step is seen when it happens, not at the end; the last line says how it
// ended.
func TestControlProgress(t *testing.T) {
	c := startControl(t)
	want := RestartRequest{Command: []string{"ruby", "new.rb"}, Force: true}
	f := c.restart(t, want)
	got := c.fleet.request.Load()
	testkit.Want(t, slices.Equal(got.Command, want.Command) && got.Force, "asked for %+v, want %+v", got, want)
	for _, step := range []string{"one", "two"} {
		c.fleet.steps <- step
		if e := <-f.events; e.Step != step || e.Operation != "restart" || e.Time.IsZero() {
			t.Errorf("got %+v, want the step %s", e, step)
		}
	}
	c.fleet.steps <- nil
	if e := <-f.events; !e.Done {
		t.Errorf("the last line is %+v", e)
	}
	testkit.Must(t, <-f.err)
}

func TestControlFailures(t *testing.T) {
	c := startControl(t)
	f := c.restart(t, RestartRequest{})
	c.fleet.steps <- "one"
	c.fleet.steps <- errors.New("worker-5 is not ready")
	remote, ok := errors.AsType[*RemoteError](<-f.err)
	testkit.Want(t, ok && remote.Error() == "worker-5 is not ready" && !remote.Misuse, "a failed restart: %+v", remote)
	none := func([]byte, Event) {}
	err := c.Do(t.Context(), "reload", ReloadRequest{}, none)
	testkit.Want(t, err != nil && err.Error() == "nothing was changed\nc.yml:1: a\nc.yml:2: b", "a configuration that was refused: %v", err)
	err = c.Do(t.Context(), "drain", DrainRequest{Target: "worker-9"}, none)
	if remote, ok := errors.AsType[*RemoteError](err); !ok || !remote.Misuse || remote.Reason != "there is no worker-9" {
		t.Errorf("a target that is not there: %v", err)
	}
	err = c.Do(t.Context(), "scale", ScaleRequest{Workers: 3}, none)
	testkit.Want(t, err == nil, "scale: %v", err)
}

// A command goes on when who asked for it leaves.
func TestControlClientLeaves(t *testing.T) {
	c := startControl(t)
	f := c.restart(t, RestartRequest{})
	c.fleet.steps <- "one"
	<-f.events
	f.leave()
	testkit.Is(t, <-f.err, context.Canceled, "the client that left")
	c.fleet.steps <- "two" // taken: it goes on
	c.fleet.steps <- nil
}

// Any number may watch what goes on, whoever began it, and nobody holds it up.
func TestControlWatch(t *testing.T) {
	c := startControl(t)
	var lines []*bufio.Scanner
	for range 3 {
		answer, err := c.ask(t.Context(), http.MethodGet, "events", nil)
		testkit.Must(t, err)
		t.Cleanup(func() { answer.Body.Close() })
		lines = append(lines, bufio.NewScanner(answer.Body))
	}
	for i := range 3 {
		c.journal.Add(Event{Operation: "restart", Step: fmt.Sprint(i)})
	}
	for _, watcher := range lines {
		for i := range 3 {
			var e Event
			testkit.Want(t, watcher.Scan() && json.Unmarshal(watcher.Bytes(), &e) == nil && e.Step == fmt.Sprint(i),
				"got %q, want step %d", watcher.Text(), i)
		}
	}
}

// What cannot be asked for is refused in a line that says why.
func TestControlRefusals(t *testing.T) {
	c := startControl(t)
	for _, test := range []struct {
		method, name, body string
		status             int
		says               string
	}{
		{"POST", "restart", `{"comand": []}`, 400, `unknown field \"comand\"`},
		{"POST", "scale", `{"workers": 2, "auto": true}`, 400, "workers and auto contradict each other"},
		{"POST", "drain", `{"target": "a:1", "undo": true, "force": true}`, 400, "undo and force contradict each other"},
		{"POST", "restart", `{"force": "yes"}`, 400, "cannot unmarshal string"},
		{"POST", "restart", `{} {}`, 400, "more than one JSON value"},
		{"POST", "restart", `{"command": ["` + strings.Repeat("x", maxControlBody) + `"]}`, 400, "too large"},
		{"GET", "restart", ``, 405, ""},
		{"POST", "status", ``, 405, ""},
		{"GET", "nothing", ``, 404, ""},
	} {
		answer, err := c.ask(t.Context(), test.method, test.name, strings.NewReader(test.body))
		testkit.Must(t, err)
		body, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		testkit.Want(t, answer.StatusCode == test.status && strings.Contains(string(body), test.says),
			"%s %s %.40s: status %d, %s", test.method, test.name, test.body, answer.StatusCode, body)
	}
	testkit.Equal(t, c.fleet.begun.Load(), 0, "restarts have begun")
}

// Commands that never end are bounded.
func TestControlBoundsCommands(t *testing.T) {
	c := startControl(t)
	for range maxOperations {
		c.restart(t, RestartRequest{}).leave()
	}
	err := c.Do(t.Context(), "restart", RestartRequest{}, func([]byte, Event) {})
	testkit.Want(t, err != nil && strings.Contains(err.Error(), "commands are at work already"), "one too many: %v", err)
	_, _, err = c.Status(t.Context())
	testkit.Want(t, err == nil, "status meanwhile: %v", err)
}

// When cabrank stops, whoever waits is told.
func TestControlShutdown(t *testing.T) {
	c := startControl(t)
	f := c.restart(t, RestartRequest{})
	testkit.Must(t, c.server.Shutdown(t.Context()))
	if err := <-f.err; err == nil || err.Error() != "cabrank is stopping" {
		t.Errorf("got %v", err)
	}
	_, _, err := c.Status(t.Context())
	want := fmt.Sprintf("nothing listens on %s; is cabrank running? --control names another socket", c.path)
	_, ok := errors.AsType[*NobodyError](err)
	testkit.Want(t, ok && err.Error() == want, "got  %v\nwant %s", err, want)
}

// An answer that breaks off is not taken for a success.
func TestControlAnswerThatBreaksOff(t *testing.T) {
	path := filepath.Join(shortFolder(t), "s")
	l, err := net.Listen("unix", path)
	testkit.Must(t, err)
	defer l.Close()
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = http.ReadRequest(bufio.NewReader(conn))
		fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{\"step\": \"one\"}\n")
	}()
	client := NewClient(path)
	defer client.Close()
	steps := 0
	err = client.Do(t.Context(), "restart", RestartRequest{}, func([]byte, Event) { steps++ })
	_, lost := errors.AsType[*LostError](err)
	testkit.Want(t, lost && steps == 1, "after %d steps: %v", steps, err)
}

// A journal keeps the newest events; who reads too slowly misses the oldest.
func TestJournalIsBounded(t *testing.T) {
	j := NewJournal()
	first := j.from(0)
	for i := range maxEvents + 10 {
		j.Add(Event{Total: i})
	}
	<-first.changed
	got := j.from(first.next)
	testkit.Want(t, len(got.events) == maxEvents && got.events[0].Total == 10 && got.next == maxEvents+10 && !got.closed,
		"%d events from %d on, next is %d", len(got.events), got.events[0].Total, got.next)
	j.close()
	j.Add(Event{})
	if got := j.from(got.next); len(got.events) != 0 || !got.closed {
		t.Errorf("after the end: %+v", got)
	}
}

// What programs read is written down: every field of the status, of an event and
// of a request is in docs/control.md.
func TestControlIsDocumented(t *testing.T) {
	text := testkit.ReadFile(t, "../../docs/control.md")
	for _, shape := range []any{
		Status{}, Event{}, RestartRequest{}, DrainRequest{}, ScaleRequest{}, UpgradeRequest{}, StopRequest{},
	} {
		for _, name := range fieldsOf(reflect.TypeOf(shape)) {
			testkit.Want(t, documented(string(text), name), "docs/control.md does not say what %s of %T is", name, shape)
		}
	}
}

// documented finds a name as `name`, as part of a longer one, or as "name":.
func documented(text, name string) bool {
	for _, form := range []string{"`" + name + "`", "." + name + "`", "`" + name + "[]", "`" + name + ".", "\"" + name + "\":"} {
		if strings.Contains(text, form) {
			return true
		}
	}
	return false
}

// fieldsOf returns the JSON names of a struct's fields and of those in them.
func fieldsOf(shape reflect.Type) []string {
	for shape.Kind() == reflect.Pointer || shape.Kind() == reflect.Slice {
		shape = shape.Elem()
	}
	if shape.Kind() != reflect.Struct || shape == reflect.TypeFor[time.Time]() {
		return nil
	}
	var names []string
	for field := range shape.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name != "" {
			names = append(names, name)
		}
		names = append(names, fieldsOf(field.Type)...)
	}
	return names
}

// Programs can rely on lists being lists and on times that say so when there
// are none.
func TestStatusAsJSON(t *testing.T) {
	got, err := json.Marshal(WorkerStatus{Name: "worker-1", Since: time.Unix(0, 0).UTC()})
	testkit.Must(t, err)
	want := `{"name":"worker-1","index":0,"state":"","since":"1970-01-01T00:00:00Z","pid":0,"address":"","generation":0,` +
		`"slots":0,"in_flight":0,"ghosts":0,"served":0,"restarts":null,"retired":null}`
	testkit.Want(t, string(got) == want, "got  %s\nwant %s", got, want)
}
