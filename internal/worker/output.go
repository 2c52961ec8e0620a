package worker

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cabrank/cabrank/internal/sink"
)

// quietAfter is the time since its readiness at which a worker is checked for output.
// Most workers have written by then that they are up.
const quietAfter = 10 * time.Second

// hintIfQuiet logs once why the output of a worker that has written nothing may be held
// back. Linux only: other systems do not tell which program a process runs.
func (w *worker) hintIfQuiet(l *child, now time.Time) {
	if l.served(now) < quietAfter || l.wrote.Swap(true) {
		return
	}
	for _, pid := range l.watched {
		program, _ := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe")
		if cure := unbuffering(program); cure != "" {
			w.s.quietOnce.Do(func() {
				w.log.Info("worker has written nothing: its runtime holds back what is printed to a pipe, and loses it when it is killed, unless told to write at once",
					"program", program, "by", cure)
			})
		}
	}
}

// unbuffering returns the setting that makes a program write to a pipe at once, instead
// of buffering for hours; empty for a program that does not buffer.
func unbuffering(program string) string {
	switch name := filepath.Base(program); {
	case strings.HasPrefix(name, "ruby"):
		return "$stdout.sync = true"
	case strings.HasPrefix(name, "python"):
		return "PYTHONUNBUFFERED=1 in its environment"
	}
	return ""
}

// source takes the lines of one worker to the sink, which all workers share.
type source struct {
	*sink.Source

	output Output
	worker string
	tail   tail
}

const (
	// tailLines is how many of its last lines are kept of a worker, for those who ask why
	// it has ended, and tailLine how much of each, octets.
	tailLines = 5
	tailLine  = 200
)

// tail keeps the last lines that a worker has written.
type tail struct {
	mu    sync.Mutex
	lines [tailLines][]byte
	next  int // counts lines
}

func (t *tail) add(text []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	line := &t.lines[t.next%tailLines]
	*line = append((*line)[:0], text[:min(len(text), tailLine)]...)
	t.next++
}

func (t *tail) read() (lines []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := max(t.next-tailLines, 0); i < t.next; i++ {
		lines = append(lines, strings.ToValidUTF8(string(t.lines[i%tailLines]), "\uFFFD"))
	}
	return lines
}

// speaker is the origin of a line.
type speaker struct {
	Worker string `json:"worker"`
	Hook   string `json:"hook,omitempty"`   // empty for the worker itself
	Stream string `json:"stream,omitempty"` // empty for stdout, and for hooks, whose streams are one
}

func newSource(into *sink.Sink, output Output, worker string) *source {
	return &source{output: output, worker: worker, Source: into.Source(func(to []byte, lines int) []byte {
		return output.append(to, speaker{Worker: worker}, []byte("… "+strconv.Itoa(lines)+" lines dropped"), time.Now())
	})}
}

// stream returns a function that takes the lines of a stream of the worker, "" or
// "stderr", each without its end. It never blocks, and is for one goroutine.
func (f *source) stream(name string) func([]byte) {
	return f.lines(speaker{Worker: f.worker, Stream: name})
}

// hook is stream for the output of a hook.
func (f *source) hook(name string) func([]byte) {
	return f.lines(speaker{Worker: f.worker, Hook: name})
}

func (f *source) lines(by speaker) func([]byte) {
	var line []byte
	return func(text []byte) {
		f.tail.add(text)
		line = f.output.append(line[:0], by, text, time.Now())
		_, _ = f.Write(line) // never fails
	}
}

// append adds one formatted line with its end.
func (o Output) append(to []byte, by speaker, text []byte, now time.Time) []byte {
	if o.JSON {
		return append(appendJSON(to, by, text, now), '\n')
	}
	to = append(to, by.Worker...)
	if by.Hook != "" {
		to = append(append(to, ' '), by.Hook...)
	}
	return append(append(append(to, " | "...), text...), '\n')
}

// appendJSON adds the line as a JSON object with its origin. A line that is an object
// stays as it is, with the origin before its own keys.
func appendJSON(to []byte, by speaker, text []byte, now time.Time) []byte {
	open := bytes.IndexByte(text, '{')
	var own struct {
		Worker json.RawMessage `json:"worker"`
		Hook   json.RawMessage `json:"hook"`
		Stream json.RawMessage `json:"stream"`
	}
	if open < 0 || json.Unmarshal(text, &own) != nil {
		return append(to, wrap(by, text, now)...)
	}
	// A line with one of these keys means something else by it.
	prefix := ""
	if own.Worker != nil || own.Hook != nil || own.Stream != nil {
		prefix = "cabrank_"
	}
	to = append(to, '{')
	for _, field := range [][2]string{{"worker", by.Worker}, {"hook", by.Hook}, {"stream", by.Stream}} {
		if field[1] != "" { // these names need no escaping
			to = append(to, `"`+prefix+field[0]+`":"`+field[1]+`",`...)
		}
	}
	rest := bytes.TrimLeft(text[open+1:], " \t\r\n")
	if rest[0] == '}' { // nothing follows our last comma
		to = to[:len(to)-1]
	}
	return append(to, rest...)
}

// wrap makes an object of a line that is not one.
func wrap(by speaker, text []byte, now time.Time) []byte {
	// Bytes that are not UTF-8 become U+FFFD.
	wrapped, err := json.Marshal(struct {
		Time  string `json:"time"`
		Level string `json:"level"`
		Msg   string `json:"msg"`
		speaker
	}{now.Format(time.RFC3339Nano), slog.LevelInfo.String(), string(text), by})
	if err != nil { // strings cannot fail
		return text
	}
	return wrapped
}
