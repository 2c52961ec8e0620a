//go:build real || soak

package workers_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// startTurning starts cabrank over three workers that turn calls away. The folder is
// for files with the names of those that take none.
func startTurning(t *testing.T) (c *harness.Controlled, folder string) {
	t.Helper()
	folder = t.TempDir()
	c = harness.StartControlled(t, []string{harness.OwnBinary(t), turningRole, "-every", folder}, "--workers", "3", "--min-ready", "3", "--slots", "4")
	c.WaitWorkers(3)
	return c, folder
}

// R4: a call that workers answer with GOAWAY below its stream ends after eight moves,
// and five callers with nothing else keep nobody's calls away from the workers.
func TestTurnedAwayCallsHarmNobody(t *testing.T) {
	c, _ := startTurning(t)
	const good, bad, calls = 6, 5, 2
	calm := time.Now()
	load := harness.StartLoad(t, c.Addr, good, harness.ShortWork)
	load.WaitAnswered(t, "", 100)
	each := time.Since(calm) / 100 // with all that this machine does beside
	began, before := time.Now(), len(load.Outcomes())
	var hostile sync.WaitGroup
	for caller := range bad {
		hostile.Go(func() { turnedCalls(t, c.Addr, caller, calls) })
	}
	hostile.Wait()
	took, beside := time.Since(began), len(load.Outcomes())-before
	load.WantNoFailure(t)
	t.Logf("%d such calls in %v; beside them %d others", bad*calls, took, beside)
	most := int(took / each)
	testkit.Want(t, beside >= most/10, "%d calls were answered in %v, of %d that could be", beside, took, most)
	if moved := c.Metric("cabrank_refusals_total", "reason", "moved"); moved < 8*bad*calls || moved > 16*bad*calls {
		t.Errorf("%v moves, want 8 of each such call and some of others that it met", moved)
	}
	for _, msg := range []string{"worker keeps refusing calls and gets fewer at a time", "worker turns calls away and gets one only now and then"} {
		lines := c.LogLines(msg)
		testkit.Want(t, len(lines) == 0, "what the calls do is taken for the worker's doing: %v", lines)
	}
	c.Stop()
}

// turnedCalls makes calls one after the other that no worker looks at.
func turnedCalls(t *testing.T, addr string, caller, calls int) {
	t.Helper()
	conn := harness.Dial(t, addr)
	for call := range calls {
		ctx, cancel := context.WithTimeout(t.Context(), harness.CallBound)
		got := harness.CallIo(ctx, conn, fmt.Sprintf("%s%d-%d", turned, caller, call), 0)
		cancel()
		harness.WantStatus(t, got.Err, codes.Unavailable, "cabrank: bad response from worker")
	}
}

// A worker that turns every call away is suspect, and who looks is told why. Its calls
// go to others, and with its first answer it is back.
func TestWorkerThatTurnsEverythingAwayIsSuspect(t *testing.T) {
	c, folder := startTurning(t)
	load := harness.StartLoad(t, c.Addr, 6, harness.ShortWork)
	load.WaitAnswered(t, "worker-1", 10)
	bad := filepath.Join(folder, "worker-1")
	testkit.Must(t, os.WriteFile(bad, nil, 0o600))
	c.Await("the suspicion", func(s *harness.OperatorStatus) bool { return s.Workers[0].State == "suspect" })
	c.WantNote("suspect", "it ends connections with calls on them that it has not looked at")
	for name, labels := range map[string][]string{
		"cabrank_worker_state": {"worker", "worker-1", "state", "suspect"},
		"cabrank_suspect":      {"worker", "worker-1"},
	} {
		testkit.Equal(t, c.Metric(name, labels...), 1, "%s", name)
	}
	line := c.WaitLog(harness.Patience, "worker turns calls away and gets one only now and then")
	testkit.Says(t, line, "it ends connections with calls on them")
	load.WaitAnswered(t, "", 100)
	testkit.Must(t, os.Remove(bad))
	c.Await("its return", func(s *harness.OperatorStatus) bool { return s.Workers[0].State == "ready" })
	c.WaitLog(harness.Patience, "worker takes calls again")
	load.WaitAnswered(t, "worker-1", 10)
	load.WantNoFailure(t)
	c.Stop()
}

// turningRole as the first argument makes the test binary a worker that ends a
// connection by GOAWAY below each call that it does not like.
const turningRole = "turning-worker"

// turned begins the ids of calls that such a worker never looks at.
const turned = "turned-"

// turningWorker answers each call of Io after a while, and says GOAWAY to the rest.
type turningWorker struct {
	name  string
	work  time.Duration
	every string // path of a file; while it is there no call but health is answered
}

func runTurning(args []string) error {
	w := &turningWorker{name: os.Getenv("CABRANK_WORKER")}
	flags := flag.NewFlagSet(turningRole, flag.ContinueOnError)
	flags.DurationVar(&w.work, "work", harness.ShortWork, "how long a call takes")
	every := flags.String("every", "", "folder: a worker with a file of its name there turns every call away")
	if err := flags.Parse(args); err != nil {
		return err
	}
	w.every = *every + "/" + w.name
	listener, err := harness.ListenFault(os.Getenv("CABRANK_ADDR"))
	if err != nil {
		return err
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go w.serve(conn) // ends with the connection
	}
}

// turningConn is one connection to a turning worker.
type turningConn struct {
	worker *turningWorker
	framer *http2.Framer // reads belong to serve

	mu     sync.Mutex // guards writing, and what follows
	closed bool       // GOAWAY was said
	open   int        // calls that are not answered yet
	net    net.Conn
}

func (w *turningWorker) serve(conn net.Conn) {
	defer conn.Close()
	c := &turningConn{worker: w, framer: http2.NewFramer(conn, conn), net: conn}
	c.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if _, err := io.CopyN(io.Discard, conn, int64(len(http2.ClientPreface))); err != nil {
		return
	}
	c.write(func() error { return c.framer.WriteSettings() })
	for {
		frame, err := c.framer.ReadFrame()
		if err != nil {
			return
		}
		c.take(frame)
	}
}

func (c *turningConn) take(frame http2.Frame) {
	switch f := frame.(type) {
	case *http2.SettingsFrame:
		if !f.IsAck() {
			c.write(c.framer.WriteSettingsAck)
		}
	case *http2.PingFrame:
		if !f.IsAck() {
			c.write(func() error { return c.framer.WritePing(true, f.Data) })
		}
	case *http2.DataFrame:
		if n := f.Length; n > 0 {
			c.write(func() error { return c.framer.WriteWindowUpdate(0, n) })
		}
	case *http2.MetaHeadersFrame:
		c.begin(f)
	}
}

// begin answers a call, or ends the connection below it.
func (c *turningConn) begin(f *http2.MetaHeadersFrame) {
	stream := f.StreamID
	_, all := os.Stat(c.worker.every)
	switch {
	case f.PseudoValue("path") == "/grpc.health.v1.Health/Check":
		c.write(func() error { return c.answer(stream, []byte{0x08, 0x01}) }) // SERVING
	case strings.HasPrefix(value(f, harness.CallIDKey), turned), all == nil:
		c.write(func() error {
			c.closed = true
			return c.framer.WriteGoAway(stream-1, http2.ErrCodeNo, nil)
		})
	default:
		c.mu.Lock()
		c.open++
		c.mu.Unlock()
		time.AfterFunc(c.worker.work, func() {
			reply, _ := proto.Marshal(&workpb.IoReply{Worker: c.worker.name}) // cannot fail
			c.write(func() error {
				c.open-- // with the answer: the last one closes the connection
				return c.answer(stream, reply)
			})
		})
	}
}

func value(f *http2.MetaHeadersFrame, name string) string {
	for _, field := range f.RegularFields() {
		if field.Name == name {
			return field.Value
		}
	}
	return ""
}

// answer sends one message and the status OK; within write.
func (c *turningConn) answer(stream uint32, message []byte) error {
	head := block(":status", "200", "content-type", "application/grpc")
	if err := c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: head, EndHeaders: true}); err != nil {
		return err
	}
	if err := c.framer.WriteData(stream, false, append([]byte{0, 0, 0, 0, byte(len(message))}, message...)); err != nil {
		return err
	}
	return c.framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: stream, BlockFragment: block("grpc-status", "0"), EndHeaders: true, EndStream: true,
	})
}

// block encodes fields that refer to no table.
func block(fields ...string) []byte {
	var out bytes.Buffer
	encoder := hpack.NewEncoder(&out)
	encoder.SetMaxDynamicTableSize(0)
	for i := 0; i < len(fields); i += 2 {
		if err := encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}); err != nil {
			panic(fmt.Sprint("a buffer that takes nothing: ", err))
		}
	}
	return out.Bytes()
}

// write has one frame sent at a time. A connection of which nothing is left ends.
func (c *turningConn) write(frames func() error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := frames(); err != nil || c.closed && c.open == 0 {
		c.net.Close()
	}
}
