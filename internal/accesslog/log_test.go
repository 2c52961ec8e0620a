package accesslog

import (
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/callers"
	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/relay"
	"github.com/cabrank/cabrank/internal/testkit"
)

func TestMain(m *testing.M) { testkit.VerifyMain(m) }

func call(code grpcwire.Code, took time.Duration) *relay.Access {
	return &relay.Access{
		Path: []byte("/shop.Orders/Get"), GRPC: true, Code: code, Worker: "worker-2", Took: took,
		Waited: 412 * time.Microsecond, Worked: 12 * time.Millisecond, Received: 5, Sent: 700,
		Caller: callers.Caller{Address: "10.0.0.7", Door: "grpc"}, Hops: 1,
	}
}

// What a line has, to the letter: programs read it.
func TestLine(t *testing.T) {
	at := time.Date(2026, 11, 23, 6, 7, 8, 9000, time.UTC)
	want := `{"time":"2026-11-23T06:07:08.000009Z","method":"/shop.Orders/Get","code":"OK","worker":"worker-2","queue_ms":0.412,"worker_ms":12,` +
		`"total_ms":12.5,"bytes_in":5,"bytes_out":700,"caller":"10.0.0.7","door":"grpc","hops":1}` + "\n"
	testkit.Equal(t, string(appendCall(nil, call(grpcwire.OK, 12500*time.Microsecond), at)), want, "the line")
	odd := &relay.Access{Path: []byte("/a\"\n\xff" + strings.Repeat("x", 300)), Status: 404, Reason: "no_worker", Tries: 2, Caller: callers.Caller{Identity: "jürgen"}}
	line := appendCall(nil, odd, at)
	var read struct {
		Method  string `json:"method"`
		Reason  string `json:"reason"`
		User    string `json:"user"`
		Status  int    `json:"status"`
		Retries int    `json:"retries"`
	}
	err := json.Unmarshal(line, &read)
	testkit.Need(t, err == nil && strings.Count(string(line), "\n") == 1, "%v: %s", err, line)
	if read.Status != 404 || read.Retries != 2 || read.Reason != "no_worker" || read.User != "jürgen" || !strings.HasPrefix(read.Method, "/a\"\n\uFFFDx") {
		t.Errorf("line is %s", line)
	}
}

func TestChoice(t *testing.T) {
	var out testkit.Buffer
	l := New(Choice{Slow: time.Second}, &out)
	l.Call(call(grpcwire.OK, time.Millisecond))
	l.Call(call(grpcwire.OK, 2*time.Second))
	l.Call(call(grpcwire.NotFound, time.Millisecond))
	l.Call(&relay.Access{Status: 200})
	l.Call(&relay.Access{Status: 500})
	l.Choose(Choice{Share: 0.5})
	for range 1000 {
		l.Call(&relay.Access{Status: 204})
	}
	l.Close()
	lines := out.String()
	n := strings.Count(lines, `"status":204`)
	testkit.Want(t, n >= 400 && n <= 600, "%d of 1,000 are written, want half", n)
	for text, want := range map[string]int{`"total_ms":2000`: 1, "NOT_FOUND": 1, `"status":500`: 1, `"status":200`: 0, `"total_ms":1,`: 1} {
		testkit.Equal(t, strings.Count(lines, text), want, "lines with %s", text)
	}
}

// A reader that stalls costs lines, which are counted, and no call waits for it.
func TestStalledReader(t *testing.T) {
	reader := testkit.NewGate()
	l := New(Choice{Share: 1}, reader)
	for range 5000 {
		l.Call(call(grpcwire.OK, time.Second))
	}
	dropped := l.Dropped()
	reader.Open()
	l.Close()
	n := strings.Count(reader.String(), "/shop.Orders/Get")
	testkit.Want(t, dropped != 0 && uint64(n)+dropped == 5000, "%d written and %d dropped", n, dropped)
	testkit.Want(t, strings.Contains(reader.String(), `"msg":"log lines dropped","lines":`), "no line says that lines are missing")
}

// A file that was renamed or removed gets no more lines; its name does.
func TestRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "calls.log")
	f, err := Open(path, slog.New(slog.DiscardHandler))
	testkit.Must(t, err)
	defer f.Close()
	write := func(line string) {
		t.Helper()
		_, err := io.WriteString(f, line)
		testkit.Must(t, err)
	}
	has := func(path, want string) {
		t.Helper()
		got, err := os.ReadFile(path)
		testkit.Want(t, err == nil && string(got) == want, "%s has %q, %v", path, got, err)
	}
	write("1\n")
	testkit.Must(t, os.Rename(path, path+".1"))
	f.Reopen()
	write("2\n")
	has(path+".1", "1\n")
	has(path, "2\n")
	testkit.Must(t, os.Remove(path))
	f.looked = time.Time{}
	write("3\n")
	has(path, "3\n")
	info, err := os.Stat(path)
	testkit.Want(t, err == nil && info.Mode() == 0o640, "mode is %v, %v", info.Mode(), err)
}

// A folder that has gone loses lines, which the log tells once; a new one gets the next.
func TestFolderGone(t *testing.T) {
	var told testkit.Buffer
	folder := filepath.Join(t.TempDir(), "logs")
	testkit.Must(t, os.Mkdir(folder, 0o700))
	f, err := Open(filepath.Join(folder, "calls.log"), slog.New(slog.NewTextHandler(&told, nil)))
	testkit.Must(t, err)
	defer f.Close()
	testkit.Must(t, os.RemoveAll(folder))
	l := New(Choice{Share: 1}, f)
	for range 3 {
		f.Reopen()
		l.Call(call(grpcwire.OK, time.Second))
	}
	l.Close()
	testkit.Want(t, l.Dropped() == 3, "%d lines are counted as lost", l.Dropped())
	testkit.Equal(t, strings.Count(told.String(), "lines of the access log are lost"), 1, "times that the log has it")
	testkit.Must(t, os.Mkdir(folder, 0o700))
	_, err = io.WriteString(f, "2\n")
	testkit.Want(t, err == nil, "%v", err)
	_, err = Open(folder, nil)
	testkit.Want(t, err != nil && strings.Contains(err.Error(), folder), "a folder is opened: %v", err)
}

// A file that was left within a line, by a full disk or a host that went down, gets the
// next line on a line of its own.
func TestLineOfItsOwn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "calls.log")
	for _, c := range []struct{ before, want string }{{"", "1\n"}, {"0\n", "0\n1\n"}, {`{"time":`, "{\"time\":\n1\n"}} {
		testkit.Must(t, os.WriteFile(path, []byte(c.before), 0o600))
		f, err := Open(path, slog.New(slog.DiscardHandler))
		testkit.Must(t, err)
		_, err = io.WriteString(f, "1\n")
		f.Close()
		got, _ := os.ReadFile(path)
		testkit.Want(t, err == nil && string(got) == c.want, "behind %q: %q, %v", c.before, got, err)
	}
}

// A pipe that nobody reads holds nobody up, and one that somebody reads gets the lines.
func TestPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "calls.pipe")
	testkit.Must(t, syscall.Mkfifo(path, 0o600))
	log := slog.New(slog.DiscardHandler)
	_, err := Open(path, log)
	testkit.Need(t, err != nil && err.Error() == "access log: "+path+" is a pipe that nobody reads, or a socket", "nobody reads: %v", err)
	reader, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	testkit.Must(t, err)
	defer reader.Close()
	f, err := Open(path, log)
	testkit.Must(t, err)
	defer f.Close()
	_, err = io.WriteString(f, "1\n")
	testkit.Must(t, err)
	got := make([]byte, 2)
	_, err = io.ReadFull(reader, got)
	testkit.Want(t, err == nil && string(got) == "1\n", "the reader has %q, %v", got, err)
}

// BenchmarkCall is what a call costs that is written, under the lock of its shard.
func BenchmarkCall(b *testing.B) {
	l := New(Choice{Share: 1}, io.Discard)
	defer l.Close()
	a := call(grpcwire.OK, time.Millisecond)
	b.ReportAllocs()
	for b.Loop() {
		l.Call(a)
	}
}
