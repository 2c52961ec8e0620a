package worker

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// Lines come out the same however the stream is cut into reads.
func TestSplitterCutsLines(t *testing.T) {
	long := strings.Repeat("x", maxLine)
	for _, test := range []struct {
		stream string
		want   []string
	}{
		{"a\nb\n", []string{"a", "b"}},
		{"a\r\n\r\nb", []string{"a", "", "b"}},
		{"no end", []string{"no end"}},
		{"", nil},
		{long + "\n", []string{long}},
		{long + "y\nz\n", []string{long, "y", "z"}},
		{long + long + "y", []string{long, long, "y"}},
	} {
		for _, step := range []int{1, 7, 1 << 20} {
			var got []string
			s := splitter{line: func(text []byte) { got = append(got, string(text)) }}
			for part := range slices.Chunk([]byte(test.stream), step) {
				s.write(part)
			}
			s.flush()
			if !slices.Equal(got, test.want) {
				t.Errorf("%.10q in steps of %d: got %d lines, want %d", test.stream, step, len(got), len(test.want))
			}
		}
	}
}

func TestOutputFormats(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	for _, test := range []struct {
		json       bool
		hook       string
		text, want string
	}{
		{false, "", `plain`, `worker-1 | plain`},
		{false, "", ``, `worker-1 | `},
		{false, "before_stop", `plain`, `worker-1 before_stop | plain`},
		{true, "before_stop", `plain`, `{"time":"2026-01-02T03:04:05.000006Z","level":"INFO","msg":"plain","worker":"worker-1","hook":"before_stop"}`},
		{true, "", `{"a": [1, {}]}`, `{"a": [1, {}]}`},
		{true, "", `plain "x"`, `{"time":"2026-01-02T03:04:05.000006Z","level":"INFO","msg":"plain \"x\"","worker":"worker-1"}`},
		{true, "", `{broken`, `{"time":"2026-01-02T03:04:05.000006Z","level":"INFO","msg":"{broken","worker":"worker-1"}`},
		{true, "", `[1]`, `{"time":"2026-01-02T03:04:05.000006Z","level":"INFO","msg":"[1]","worker":"worker-1"}`},
		{true, "", "\xff", `{"time":"2026-01-02T03:04:05.000006Z","level":"INFO","msg":"\ufffd","worker":"worker-1"}`},
	} {
		got := string(Output{JSON: test.json}.append(nil, "worker-1", test.hook, []byte(test.text), now))
		if got != test.want+"\n" {
			t.Errorf("%q: got %q, want %q", test.text, got, test.want)
		}
	}
}

// gate is a reader of our output that stalls until it is opened.
type gate struct {
	open chan struct{}

	mu  sync.Mutex
	got bytes.Buffer
}

func (g *gate) Write(p []byte) (int, error) {
	<-g.open
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.got.Write(p)
}

func (g *gate) String() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.got.String()
}

// A stalled reader blocks nobody and costs bounded memory; what was lost is
// counted where it is missing; another worker's share is untouched.
func TestSinkDropsWhatAStalledReaderDoesNotTake(t *testing.T) {
	reader := &gate{open: make(chan struct{})}
	s := newSink(Output{Writer: reader})
	s.open()
	loud, quiet := s.source("worker-1"), s.source("worker-2")
	const lines = 20_000
	for i := range lines {
		loud.line([]byte(strings.Repeat("x", 90) + strconv.Itoa(i)))
	}
	quiet.line([]byte("still here"))
	s.mu.Lock()
	held := loud.pending + loud.writing
	s.mu.Unlock()
	if held > maxPending {
		t.Errorf("%d bytes are held, at most %d are allowed", held, maxPending)
	}
	close(reader.open)
	testkit.Eventually(t, 5*time.Second, "the notice", func() bool { return strings.Contains(reader.String(), "lines dropped") })
	loud.line([]byte("after"))
	s.close()

	all := strings.Split(strings.TrimSuffix(reader.String(), "\n"), "\n")
	kept, dropped := 0, 0
	for _, line := range all {
		if strings.HasPrefix(line, "worker-1 | xxx") {
			kept++
		}
		if count, found := strings.CutPrefix(line, "worker-1 | … "); found {
			n, err := strconv.Atoi(strings.TrimSuffix(count, " lines dropped"))
			if err != nil {
				t.Fatalf("notice %q: %v", line, err)
			}
			dropped += n
		}
	}
	if kept+dropped != lines || dropped == 0 {
		t.Errorf("%d lines kept, %d dropped, want %d in all", kept, dropped, lines)
	}
	if !slices.Contains(all, "worker-2 | still here") || all[len(all)-1] != "worker-1 | after" {
		t.Errorf("the end is %q", all[len(all)-2:])
	}
}

// Stop does not wait for a reader that stalls for ever, and the last lines of a
// reader that does not are written.
func TestSinkClose(t *testing.T) {
	reader := &gate{open: make(chan struct{})}
	t.Cleanup(func() { close(reader.open) })
	stalled := newSink(Output{Writer: reader})
	stalled.open()
	stalled.source("worker-1").line([]byte("never read"))
	began := time.Now()
	stalled.close()
	if took := time.Since(began); took > flushLimit+2*time.Second {
		t.Errorf("close took %v", took)
	}

	var got bytes.Buffer
	s := newSink(Output{Writer: &got, JSON: true})
	s.open()
	from := s.source("worker-1")
	for range 100 {
		from.line([]byte("x"))
	}
	s.close()
	decoder := json.NewDecoder(&got)
	for i := range 100 {
		var line map[string]string
		if err := decoder.Decode(&line); err != nil || line["msg"] != "x" || line["worker"] != "worker-1" {
			t.Fatalf("line %d: %v, %v", i, line, err)
		}
	}
}

// A pipe that somebody holds open is read until its deadline, and what came
// before it counts, half a line too.
func TestPumpEndsAtItsDeadline(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	var got bytes.Buffer
	s := newSink(Output{Writer: &got})
	s.open()
	done := make(chan struct{})
	go func() {
		defer close(done)
		pump(ours, s.source("worker-1").line)
	}()
	if _, err := io.WriteString(theirs, "one\ntw"); err != nil {
		t.Fatal(err)
	}
	if err := ours.SetReadDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	<-done
	s.close()
	if want := "worker-1 | one\nworker-1 | tw\n"; got.String() != want {
		t.Errorf("got %q, want %q", got.String(), want)
	}
}
