package rawh2

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"

	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// overTLS is before a target, host:port, that is called so.
const overTLS = "tls://"

const (
	// mostStreams is how many calls are under way on a connection: what every proxy
	// allows. Later ones wait, and that counts.
	mostStreams     = 100
	dialsAtOnce     = 32  // enough to be quick, and far below any backlog
	manyConnections = 100 // from here on they have small buffers: they hardly do anything
	// mostConnections and mostAnswers bound what is asked for.
	mostConnections, mostAnswers = 100_000, 100_000
)

// Request is what each call asks for.
type Request struct {
	// Connections are opened by the first call on each; calls take them in turn.
	Connections int    `json:"connections"`
	Bytes       int    `json:"bytes"`   // the size of a message
	Answers     uint32 `json:"answers"` // messages that answer a call
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
	_ traffic.Driver = (*Client)(nil)
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
	size := int64(r.Bytes)
	well := traffic.Answer{
		Sent:     traffic.Volume{Messages: 1, Bytes: size},
		Received: traffic.Volume{Messages: int64(r.Answers), Bytes: size * int64(r.Answers)},
	}
	scheme := "http"
	if strings.HasPrefix(target, overTLS) {
		scheme = "https"
	}
	c.form.firstHead, c.form.head = Blocks(
		":method", "POST", ":scheme", scheme, ":path", "/bench.Echo/Call", ":authority", "bench.example",
		"content-type", "application/grpc", "user-agent", "grpc-go/1.85.0", "te", "trailers", "grpc-timeout", "5S",
	)
	for i := range c.conns {
		c.conns[i] = clientConn{client: c, number: uint32(i), well: well}
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

// Call makes one call.
func (c *Client) Call(ctx context.Context, call traffic.Call) traffic.Answer {
	end := make(single, 1)
	c.Start(ctx, []traffic.Task{{Call: call, End: end}})
	return <-end
}

type single chan traffic.Answer

func (s single) End(answer *traffic.Answer) (next traffic.Call, more bool) {
	s <- *answer
	return next, false
}

// Start begins calls. All calls of a load have the same context: when it ends, so do the
// connections, and with them the calls.
func (c *Client) Start(ctx context.Context, tasks []traffic.Task) {
	c.ending.Do(func() { context.AfterFunc(ctx, c.Close) })
	for len(tasks) > 0 {
		number, n := c.connection(tasks[0]), 1
		for i := 1; i < len(tasks); i++ {
			if c.connection(tasks[i]) == number {
				tasks[n], tasks[i] = tasks[i], tasks[n]
				n++
			}
		}
		conn := &c.conns[number]
		if conn.ready.Load() {
			conn.begin(tasks[:n])
		} else {
			first := slices.Clone(tasks[:n])
			go func() { // ends when the connection is there or has failed
				conn.once.Do(func() { conn.open(ctx) })
				conn.begin(first)
			}()
		}
		tasks = tasks[n:]
	}
}

// connection is the number of that which a call is made on.
func (c *Client) connection(t traffic.Task) uint64 { return t.Call.Number % uint64(len(c.conns)) }

type clientConn struct {
	client *Client
	number uint32
	once   sync.Once
	ready  atomic.Bool // it was opened, or broken says why not
	broken error
	h2     *Conn // its mutex guards what follows

	stream  uint32  // of the next call, or one before it
	head    []byte  // of the next call
	lanes   []*lane // those that have a call, each at its slot
	used    int     // of them
	resting []*lane
	waiting []traffic.Task // for a lane
	now     time.Time      // read once for all answers of a batch; zero until then
	lost    error          // why no more calls can be made
	well    traffic.Answer // of a call that went well

	good, ended BlockMemo
}

// lane is a call under way; it is used again for others.
type lane struct {
	task    traffic.Task
	stream  uint32
	message []byte // with prefix: sent, and expected back
	got     int    // bytes of DATA that were right so far
	headed  bool   // the head was right
}

// slots is a power of two, so that there are more than calls under way.
const slots = 256

// slot is where the lane of a stream stands, by the low bits of its id, which are odd: ids are
// chosen so that no two calls have the same one.
func (c *clientConn) slot(stream uint32) **lane { return &c.lanes[stream>>1%slots] }

// open dials; calls that come meanwhile wait.
func (c *clientConn) open(ctx context.Context) {
	defer c.ready.Store(true)
	c.client.dials <- struct{}{}
	defer func() { <-c.client.dials }()
	conn, err := dial(ctx, c.client.target)
	if err != nil {
		c.broken = err
		return
	}
	c.client.opened.Add(1)
	buffer := readBuffer
	if len(c.client.conns) > manyConnections {
		buffer = SmallReadBuffer
	}
	c.h2, c.stream, c.head, c.lanes = NewConn(conn, true, buffer), 1, c.client.form.firstHead, make([]*lane, slots)
	go c.read() // ends with the connection
}

// dial connects, over TLS with whoever is there if the target says so: what it costs is measured.
func dial(ctx context.Context, target string) (net.Conn, error) {
	if addr, secure := strings.CutPrefix(target, overTLS); secure {
		d := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}}
		return d.DialContext(ctx, "tcp", addr)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", target)
}

func (c *clientConn) begin(tasks []traffic.Task) {
	if c.h2 == nil {
		for _, t := range tasks {
			c.fail(t, c.broken.Error())
		}
		return
	}
	err := c.h2.Do(func() (err error) {
		for _, t := range tasks {
			err = errors.Join(err, c.start(t))
		}
		return err
	})
	if err != nil {
		c.h2.Close() // the reader ends the calls
	}
}

func (c *clientConn) start(t traffic.Task) error {
	switch why := c.lost; {
	case why != nil:
		c.fail(t, why.Error())
	case len(c.resting) > 0:
		l := c.resting[len(c.resting)-1]
		c.resting = c.resting[:len(c.resting)-1]
		return c.send(l, t)
	case c.used < mostStreams:
		return c.send(&lane{}, t)
	default:
		c.waiting = append(c.waiting, t)
	}
	return nil
}

// send appends a call. An error is the end of the connection, and of all that is on it.
func (c *clientConn) send(l *lane, t traffic.Task) error {
	for *c.slot(c.stream) != nil { // ids may be left out (RFC 9113, 5.1.1)
		c.stream += 2
	}
	l.task, l.stream, l.got, l.headed = t, c.stream, 0, false
	*c.slot(l.stream) = l
	c.used++
	l.message = AppendMessage(l.message[:0], c.client.request.Bytes, c.client.request.Answers, c.number, t.Call.Number)
	c.h2.Headers(l.stream, c.head, false)
	c.head = c.client.form.head
	c.stream += 2
	err := c.h2.Send(l.stream, l.message, true, nil)
	if err != nil {
		c.lost = err
	}
	return err
}

// read takes answers until the connection ends, and with it the calls.
func (c *clientConn) read() {
	err := c.h2.Serve(c)
	c.h2.Close()
	c.h2.mu.Lock()
	defer c.h2.mu.Unlock()
	if c.lost == nil {
		c.lost = err
	}
	c.lost = fmt.Errorf("connection %d: %w", c.number, c.lost)
	for _, l := range c.lanes {
		if l != nil {
			c.fail(l.task, fmt.Sprintf("stream %d: %v", l.stream, c.lost))
		}
	}
	for _, t := range c.waiting {
		c.fail(t, c.lost.Error())
	}
}

// fail ends a call that has no lane any more. Nothing comes behind it.
func (c *clientConn) fail(t traffic.Task, why string) {
	t.End.End(&traffic.Answer{Code: uint32(codes.Unavailable), Message: why, Ended: time.Now()})
}

// finish ends a call, "" meaning well, and begins the next one: who has waited goes first.
func (c *clientConn) finish(l *lane, failure string) error {
	*c.slot(l.stream) = nil
	c.used--
	if c.now.IsZero() {
		c.now = time.Now()
	}
	answer := &c.well
	if failure != "" {
		answer = &traffic.Answer{Code: uint32(codes.Unavailable), Message: fmt.Sprintf("stream %d: %s", l.stream, failure)}
	}
	answer.Ended = c.now
	t := l.task
	next, more := t.End.End(answer)
	t.Call = next
	if len(c.waiting) > 0 {
		if more {
			c.waiting = append(c.waiting, t)
		}
		t, more = c.waiting[0], true
		c.waiting = slices.Delete(c.waiting, 0, 1)
	}
	if more {
		return c.send(l, t)
	}
	l.task = traffic.Task{}
	c.resting = append(c.resting, l)
	return nil
}

// BatchRead has the next batch read the clock.
func (c *clientConn) BatchRead() error {
	c.now = time.Time{}
	return nil
}

func (c *clientConn) Frame(f Frame) error {
	if f.Type == http2.FrameGoAway {
		return fmt.Errorf("GOAWAY % x", f.Payload)
	}
	l := *c.slot(f.Stream)
	if l != nil && l.stream != f.Stream {
		l = nil
	}
	switch {
	case l == nil && f.Type == http2.FrameRSTStream: // the call has ended already
	case l == nil:
		return fmt.Errorf("frame of type %d for stream %d, which has no call", f.Type, f.Stream)
	case f.Type == http2.FrameRSTStream:
		return c.finish(l, fmt.Sprintf("RST_STREAM % x", f.Payload))
	case f.Type == http2.FrameData:
		return l.check(f)
	case f.Type == http2.FrameHeaders:
		return c.headers(f, l)
	}
	return nil
}

// headers takes the head or, with END_STREAM, the trailers of an answer.
func (c *clientConn) headers(f Frame, l *lane) error {
	want := int(c.client.request.Answers) * len(l.message)
	switch {
	case !f.Ended(): // a head that is wrong fails the call at its end
		l.headed = c.good.Holds(f.Payload, ":status", "200", "content-type", "application/grpc")
		return nil
	case !l.headed:
		return c.finish(l, "the head is not 200 with application/grpc")
	case !c.ended.Holds(f.Payload, "grpc-status", "0"):
		return c.finish(l, "the trailers have no grpc-status 0")
	case l.got != want:
		return c.finish(l, fmt.Sprintf("an answer of %d bytes instead of %d", l.got, want))
	}
	return c.finish(l, "")
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
