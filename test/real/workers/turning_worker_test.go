//go:build real || soak

package workers_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/protobuf/proto"

	"github.com/cabrank/cabrank/examples/go/workpb"

	"github.com/cabrank/cabrank/test/real/harness"
)

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
