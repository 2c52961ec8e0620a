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
	if got := string(appendCall(nil, call(grpcwire.OK, 12500*time.Microsecond), at)); got != want {
		t.Errorf("line is\n%swant\n%s", got, want)
	}
	odd := &relay.Access{Path: []byte("/a\"\n\xff" + strings.Repeat("x", 300)), Status: 404, Reason: "no_worker", Tries: 2, Caller: callers.Caller{Identity: "jürgen"}}
	line := appendCall(nil, odd, at)
	var read struct {
		Method  string `json:"method"`
		Reason  string `json:"reason"`
		User    string `json:"user"`
		Status  int    `json:"status"`
		Retries int    `json:"retries"`
	}
	if err := json.Unmarshal(line, &read); err != nil || strings.Count(string(line), "\n") != 1 {
		t.Fatalf("%v: %s", err, line)
	}
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
	if n := strings.Count(lines, `"status":204`); n < 400 || n > 600 {
		t.Errorf("%d of 1,000 are written, want half", n)
	}
	for text, want := range map[string]int{`"total_ms":2000`: 1, "NOT_FOUND": 1, `"status":500`: 1, `"status":200`: 0, `"total_ms":1,`: 1} {
		if n := strings.Count(lines, text); n != want {
			t.Errorf("%d lines have %s, want %d", n, text, want)
		}
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
	if n := strings.Count(reader.String(), "/shop.Orders/Get"); dropped == 0 || uint64(n)+dropped != 5000 {
		t.Errorf("%d written and %d dropped", n, dropped)
	}
	if !strings.Contains(reader.String(), `"msg":"log lines dropped","lines":`) {
		t.Error("no line says that lines are missing")
	}
}

// A file that was renamed or removed gets no more lines; its name does.
func TestRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "calls.log")
	f, err := Open(path, slog.New(slog.DiscardHandler))
	testkit.Must(t, err)
	defer f.Close()
	write := func(line string) {
		t.Helper()
		if _, err := io.WriteString(f, line); err != nil {
			t.Fatal(err)
		}
	}
	has := func(path, want string) {
		t.Helper()
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s has %q, %v", path, got, err)
		}
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
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o640 {
		t.Errorf("mode is %v, %v", info.Mode(), err)
	}
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
	if l.Dropped() != 3 {
		t.Errorf("%d lines are counted as lost", l.Dropped())
	}
	if n := strings.Count(told.String(), "lines of the access log are lost"); n != 1 {
		t.Errorf("the log has it %d times", n)
	}
	testkit.Must(t, os.Mkdir(folder, 0o700))
	if _, err := io.WriteString(f, "2\n"); err != nil {
		t.Error(err)
	}
	if _, err := Open(folder, nil); err == nil || !strings.Contains(err.Error(), folder) {
		t.Errorf("a folder is opened: %v", err)
	}
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
		if got, _ := os.ReadFile(path); err != nil || string(got) != c.want {
			t.Errorf("behind %q: %q, %v", c.before, got, err)
		}
	}
}

// A pipe that nobody reads holds nobody up, and one that somebody reads gets the lines.
func TestPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "calls.pipe")
	testkit.Must(t, syscall.Mkfifo(path, 0o600))
	log := slog.New(slog.DiscardHandler)
	if _, err := Open(path, log); err == nil || err.Error() != "access log: "+path+" is a pipe that nobody reads, or a socket" {
		t.Fatalf("nobody reads: %v", err)
	}
	reader, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	testkit.Must(t, err)
	defer reader.Close()
	f, err := Open(path, log)
	testkit.Must(t, err)
	defer f.Close()
	if _, err := io.WriteString(f, "1\n"); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 2)
	if _, err := io.ReadFull(reader, got); err != nil || string(got) != "1\n" {
		t.Errorf("the reader has %q, %v", got, err)
	}
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
