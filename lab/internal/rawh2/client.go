package rawh2

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/codes"

	"github.com/cabrank/cabrank/lab/internal/traffic"
)

const (
	// mostStreams is how many calls are under way on a connection: what every proxy
	// allows. Later ones wait, and that counts.
	mostStreams = 100
	// dialsAtOnce is enough to be quick, and far below any backlog.
	dialsAtOnce = 32
	// manyConnections have small buffers: they hardly do anything.
	manyConnections = 100
	// mostConnections and mostAnswers bound what is asked for.
	mostConnections, mostAnswers = 100_000, 100_000
)

// Request is what each call asks for.
type Request struct {
	// Connections are opened by the first call on each; calls take them in turn.
	Connections int `json:"connections"`
	// Bytes is the size of a message, Answers how many of them answer a call.
	Bytes   int    `json:"bytes"`
	Answers uint32 `json:"answers"`
}

// ParseRequest reads JSON; what it does not say is one connection, 16 bytes, one answer.
//
// Errors: one line.
func ParseRequest(text string) (Request, error) {
	r := Request{Connections: 1, Bytes: MinMessage, Answers: 1}
	decoder := json.NewDecoder(bytes.NewBufferString(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&r); err != nil {
		return r, fmt.Errorf("data: %w; a raw client takes such as {\"connections\": 4, \"bytes\": 16, \"answers\": 1}", err)
	}
	switch {
	case r.Connections < 1 || r.Connections > mostConnections:
		return r, fmt.Errorf("data: %d connections: want 1 to %d", r.Connections, mostConnections)
	case r.Bytes < MinMessage || r.Bytes > MaxMessage:
		return r, fmt.Errorf("data: %d bytes: want %d to %d", r.Bytes, MinMessage, MaxMessage)
	case r.Answers < 1 || r.Answers > mostAnswers:
		return r, fmt.Errorf("data: %d answers: want 1 to %d", r.Answers, mostAnswers)
	}
	return r, nil
}

// Client makes calls of gRPC at the least cost, and compares every byte of every answer,
// its status and its trailers. It needs workers that answer as Echo does. Calls say that
// their callers wait for 5 s, and it is for the proxy to see to that: the client itself
// gives up when the load does.
//
// Life: NewClient; calls; Close when all have ended.
type Client struct {
	target  string
	request Request
	form    form
	conns   []clientConn
	dials   chan struct{}
	opened  atomic.Int64
	ending  sync.Once
}

var (
	_ traffic.Client = (*Client)(nil)
	_ traffic.Dialer = (*Client)(nil)
)

// NewClient returns a client that has opened no connection yet.
//
// Errors: one line, for requests that cannot be.
func NewClient(target, request string) (*Client, error) {
	r, err := ParseRequest(request)
	if err != nil {
		return nil, err
	}
	c := &Client{target: target, request: r, conns: make([]clientConn, r.Connections), dials: make(chan struct{}, dialsAtOnce)}
	c.form.firstHead, c.form.head = Blocks(0,
		":method", "POST", ":scheme", "http", ":path", "/bench.Echo/Call", ":authority", "bench.example",
		"content-type", "application/grpc", "user-agent", "grpc-go/1.85.0", "te", "trailers", "grpc-timeout", "5S",
	)
	for i := range c.conns {
		c.conns[i] = clientConn{client: c, number: uint32(i)}
	}
	return c, nil
}

// String says how calls are made.
func (c *Client) String() string {
	return fmt.Sprintf("raw calls of %d bytes, %d connections", c.request.Bytes, c.request.Connections)
}

// Opened returns how many connections were opened so far.
func (c *Client) Opened() int64 { return c.opened.Load() }

// Close ends the connections.
func (c *Client) Close() {
	for i := range c.conns {
		c.conns[i].once.Do(func() { c.conns[i].broken = errors.New("closed") })
		if c.conns[i].h2 != nil {
			c.conns[i].h2.Close()
		}
	}
}

// Call makes one call. All calls of a load have the same context: when it ends, so do the
// connections, and with them the calls.
func (c *Client) Call(ctx context.Context, call traffic.Call) traffic.Answer {
	c.ending.Do(func() { context.AfterFunc(ctx, c.Close) })
	conn := &c.conns[call.Number%uint64(len(c.conns))]
	conn.once.Do(conn.open)
	why := conn.unreached()
	if why == "" {
		l := <-conn.room
		if l == nil {
			l = &lane{failure: make(chan string, 1)}
		}
		conn.start(l, call.Number)
		why = <-l.failure
		conn.room <- l
	}
	if why != "" {
		return traffic.Answer{Code: uint32(codes.Unavailable), Message: why}
	}
	size := int64(c.request.Bytes)
	return traffic.Answer{Sent: traffic.Volume{Messages: 1, Bytes: size}, Received: traffic.Volume{Messages: int64(c.request.Answers), Bytes: size * int64(c.request.Answers)}}
}

// clientConn is one connection with its calls.
type clientConn struct {
	client *Client
	number uint32
	once   sync.Once
	broken error      // why it is not open
	room   chan *lane // a place for each call, nil where there was none yet
	h2     *Conn      // its mutex guards what follows

	stream uint32 // of the next call
	head   []byte // of the next call
	lanes  map[uint32]*lane
	last   *lane         // whose frame came last; nil if its call has ended
	append chan struct{} // tells the writer that there is something to write
	lost   error         // why no more calls can be made

	good, ended BlockMemo
}

// lane is a call under way; it is used again for others.
type lane struct {
	stream  uint32
	message []byte // with prefix: sent, and expected back
	got     int    // bytes of DATA that were right so far
	headed  bool   // the head was right
	failure chan string
}

// open dials; calls that come meanwhile wait.
func (c *clientConn) open() {
	c.client.dials <- struct{}{}
	defer func() { <-c.client.dials }()
	conn, err := net.Dial("tcp", c.client.target)
	if err != nil {
		c.broken = err
		return
	}
	c.client.opened.Add(1)
	buffer := ReadBuffer
	if len(c.client.conns) > manyConnections {
		buffer = SmallReadBuffer
	}
	c.h2, c.room, c.append = NewConn(conn, true, buffer), make(chan *lane, mostStreams), make(chan struct{}, 1)
	c.stream, c.head, c.lanes = 1, c.client.form.firstHead, map[uint32]*lane{}
	for range mostStreams {
		c.room <- nil
	}
	go c.read()  // ends with the connection
	go c.write() // ends with the reader
}

func (c *clientConn) unreached() string {
	if c.broken != nil {
		return c.broken.Error()
	}
	return ""
}

// read takes answers until the connection ends, and with it the calls.
func (c *clientConn) read() {
	err := c.h2.Serve(c)
	c.h2.Close()
	c.h2.mu.Lock()
	defer c.h2.mu.Unlock()
	c.lost = fmt.Errorf("connection %d: %w", c.number, err)
	for _, l := range c.lanes {
		c.finish(l, c.lost.Error())
	}
	close(c.append)
}

// write writes what calls have appended: of all those that go on at the same moment, as
// the callers of a batch of answers do, with one write.
func (c *clientConn) write() {
	for range c.append {
		runtime.Gosched()
		_ = c.h2.Do(func() error { return nil }) // the reader sees the end of the connection
	}
}

// start appends a call.
func (c *clientConn) start(l *lane, number uint64) {
	c.h2.mu.Lock()
	defer c.h2.mu.Unlock()
	l.stream, l.got, l.headed = c.stream, 0, false
	c.lanes[l.stream] = l
	if c.lost != nil {
		c.finish(l, c.lost.Error())
		return
	}
	l.message = AppendMessage(l.message[:0], c.client.request.Bytes, c.client.request.Answers, c.number, number)
	c.h2.Headers(l.stream, c.head, false)
	c.head = c.client.form.head
	c.stream += 2
	if err := c.h2.Send(l.stream, l.message, true, nil); err != nil {
		c.finish(l, err.Error())
	}
	select {
	case c.append <- struct{}{}:
	default: // it will be written with what came before
	}
}

// finish ends a call, "" meaning well.
func (c *clientConn) finish(l *lane, failure string) {
	if failure != "" {
		failure = fmt.Sprintf("stream %d: %s", l.stream, failure)
	}
	delete(c.lanes, l.stream)
	c.last = nil
	l.failure <- failure
}

// BatchRead has nothing to do: callers go on by themselves.
func (c *clientConn) BatchRead() error { return nil }

// Frame checks one frame of an answer.
func (c *clientConn) Frame(f Frame) error {
	if f.Type == TypeGoAway {
		return fmt.Errorf("GOAWAY % x", f.Payload)
	}
	l := c.last // an answer has many frames
	if l == nil || l.stream != f.Stream {
		l = c.lanes[f.Stream]
		c.last = l
	}
	switch {
	case l == nil && f.Type == TypeReset: // the call has ended already
	case l == nil:
		return fmt.Errorf("frame of type %d for stream %d, which has no call", f.Type, f.Stream)
	case f.Type == TypeReset:
		c.finish(l, fmt.Sprintf("RST_STREAM % x", f.Payload))
	case f.Type == TypeData:
		return l.check(f)
	case f.Type == TypeHeaders:
		c.headers(f, l)
	}
	return nil
}

// headers takes the head or, with END_STREAM, the trailers of an answer.
func (c *clientConn) headers(f Frame, l *lane) {
	want := int(c.client.request.Answers) * len(l.message)
	switch {
	case !f.Ended(): // a head that is wrong fails the call at its end
		l.headed = c.good.Holds(f.Payload, ":status", "200", "content-type", "application/grpc")
	case !l.headed:
		c.finish(l, "the head is not 200 with application/grpc")
	case !c.ended.Holds(f.Payload, "grpc-status", "0"):
		c.finish(l, "the trailers have no grpc-status 0")
	case l.got != want:
		c.finish(l, fmt.Sprintf("an answer of %d bytes instead of %d", l.got, want))
	default:
		c.finish(l, "")
	}
}

// check compares DATA, cut anywhere, with the message that is expected.
func (l *lane) check(f Frame) error {
	if f.Ended() {
		return fmt.Errorf("stream %d: an answer that ends without trailers", f.Stream)
	}
	for b := f.Payload; len(b) > 0; {
		want := l.message[l.got%len(l.message):]
		n := min(len(want), len(b))
		if !bytes.Equal(b[:n], want[:n]) {
			return fmt.Errorf("stream %d: wrong bytes in the answer, behind %d that were right", f.Stream, l.got)
		}
		l.got, b = l.got+n, b[n:]
	}
	return nil
}

// form are header blocks that are sent again and again.
type form struct {
	firstHead, head []byte // of a connection's first call, and of later ones
	trailers        []byte
}
