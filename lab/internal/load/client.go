package load

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/cabrank/cabrank/lab/internal/rawh2"
)

// form holds the request header blocks. It is never changed.
type form struct{ first, later []byte }

func newForm(p Plan) form {
	list := []string{
		":method", "POST", ":scheme", "http", ":path", "/bench.Echo/Call", ":authority", "bench.example",
		"content-type", "application/grpc", "user-agent", "grpc-go/1.85.0", "te", "trailers",
	}
	if p.Timeout != "" {
		list = append(list, "grpc-timeout", p.Timeout)
	}
	var table uint32
	if p.Indexed {
		table = 4096
	}
	var f form
	f.first, f.later = rawh2.Blocks(table, list...)
	return f
}

// lane makes one call after the other.
type lane struct {
	begun   time.Duration // when it began or, in an open loop, was to begin; since the epoch
	stream  uint32        // of the present call
	message []byte        // of the present call, with prefix: sent, and expected back
	got     int           // bytes of DATA that were right so far
	headed  bool          // the response HEADERS were right
}

// client is one connection with its lanes. All but what is marked belongs to
// the handler of the connection, and may be read when run has returned.
type client struct {
	conn *rawh2.Conn
	num  uint32
	plan Plan
	form form
	sig  *signals

	now     time.Duration // since the epoch, read once per batch; 0 until needed
	block   []byte        // of the next request
	lanes   table
	resting []*lane  // have no call
	due     schedule // of an open loop
	stream  uint32   // id of the next call, or one before it
	calls   uint64   // begun
	limit   uint64   // most calls, 0 without bound
	head    rawh2.BlockMemo
	trailer rawh2.BlockMemo
	done    uint64          // since the last batch
	took    []time.Duration // of those, what counts
	sent    []time.Duration // when calls were due that are about to be sent

	arrived []time.Duration // owned by the pacer: calls to add to due

	completed atomic.Uint64 // read by anybody
	failed    uint64
	failure   string // the first
}

func newClient(conn *rawh2.Conn, num uint32, p Plan, f form, sig *signals) *client {
	c := &client{conn: conn, num: num, plan: p, form: f, sig: sig, block: f.first, lanes: newTable(p.Streams), stream: 1}
	for range p.Streams {
		c.resting = append(c.resting, &lane{})
	}
	return c
}

// errStopped ends a connection that has nothing left to do.
var errStopped = errors.New("stopped")

// run makes calls until it is told to stop, or until its limit, and all have
// ended; or until the connection breaks, which fails the calls in flight and
// ends all lanes. The connection stays open.
func (c *client) run() {
	err := c.conn.Serve(c)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		if c.lanes.used == 0 {
			err = errStopped // an open loop stops between calls, too
		} else {
			err = fmt.Errorf("no answer within %v of the end of the run", grace)
		}
	}
	if !errors.Is(err, errStopped) {
		c.fail(uint64(max(c.lanes.used, 1)), fmt.Sprintf("connection %d with %d calls in flight: %v", c.num, c.lanes.used, err))
	}
	c.publish()
}

// publish tells what has ended since it was called before.
func (c *client) publish() {
	c.completed.Add(c.done)
	c.sig.kept.addLatencies(c.took)
	c.done, c.took = 0, c.took[:0]
}

func (c *client) fail(calls uint64, why string) {
	c.failed += calls
	if c.failure == "" {
		c.failure = why
	}
}

// Frame checks one frame of an answer.
func (c *client) Frame(f rawh2.Frame) error {
	if f.Type == rawh2.TypeGoAway {
		return fmt.Errorf("GOAWAY % x", f.Payload)
	}
	l := c.lanes.of(f.Stream)
	if l == nil && f.Type == rawh2.TypeReset {
		return nil // the call has ended already
	}
	if l == nil {
		return fmt.Errorf("frame of type %d for stream %d, which has no call", f.Type, f.Stream)
	}
	switch f.Type {
	case rawh2.TypeReset:
		c.finish(l, fmt.Sprintf("RST_STREAM % x", f.Payload))
	case rawh2.TypeData:
		if why := l.check(f); why != "" {
			return fmt.Errorf("stream %d: %s", f.Stream, why)
		}
	case rawh2.TypeHeaders:
		c.headers(f, l)
	}
	return nil
}

// headers takes the head or, with END_STREAM, the trailers of an answer.
func (c *client) headers(f rawh2.Frame, l *lane) {
	switch {
	case !f.Ended() && c.head.Holds(f.Payload, ":status", "200", "content-type", "application/grpc"):
		l.headed = true
	case !f.Ended():
		// a head that is wrong leaves headed false, which fails the call at its end
	case !l.headed:
		c.finish(l, "the head is not 200 with application/grpc")
	case !c.trailer.Holds(f.Payload, "grpc-status", "0"):
		c.finish(l, "the trailers have no grpc-status 0")
	case l.got != c.plan.Answers*len(l.message):
		c.finish(l, fmt.Sprintf("an answer of %d bytes instead of %d", l.got, c.plan.Answers*len(l.message)))
	default:
		c.finish(l, "")
	}
}

// check compares DATA, cut anywhere, with the message that is expected.
func (l *lane) check(f rawh2.Frame) string {
	if f.Ended() {
		return "an answer that ends without trailers"
	}
	for b := f.Payload; len(b) > 0; {
		want := l.message[l.got%len(l.message):]
		n := min(len(want), len(b))
		if !bytes.Equal(b[:n], want[:n]) {
			return fmt.Sprintf("wrong bytes in the answer, behind %d that were right", l.got)
		}
		l.got, b = l.got+n, b[n:]
	}
	return ""
}

// finish ends a call, "" meaning well.
func (c *client) finish(l *lane, failure string) {
	c.lanes.remove(l)
	c.resting = append(c.resting, l)
	if failure != "" {
		c.fail(1, fmt.Sprintf("stream %d of connection %d: %s", l.stream, c.num, failure))
		return
	}
	c.done++
	if c.sig.counts(l.begun) {
		c.took = append(c.took, c.time()-l.begun)
	}
}

// BatchRead starts the next call of every lane that has none.
func (c *client) BatchRead() error {
	c.publish()
	defer func() { c.now = 0 }()
	if c.sig.stop.Load() || c.limit > 0 && c.calls == c.limit {
		return c.rest()
	}
	if c.plan.Rate > 0 {
		return c.startDue()
	}
	for i, l := range c.resting {
		if err := c.start(l, c.time()); err != nil {
			return err
		}
		if c.plan.Burst > 0 && i%c.plan.Burst == c.plan.Burst-1 {
			if err := c.conn.Flush(); err != nil {
				return err
			}
		}
	}
	c.resting = c.resting[:0]
	return nil
}

// rest starts nothing more; the last frames that the peer waits for go out.
func (c *client) rest() error {
	if c.lanes.used > 0 {
		return nil
	}
	if err := c.conn.Flush(); err != nil {
		return err
	}
	return errStopped
}

// startDue starts the calls of an open loop that are due, as far as lanes are
// free, and notes how late they are. They are written when it returns.
func (c *client) startDue() error {
	err := c.startFree()
	now := c.sig.now()
	for i, due := range c.sent {
		c.sent[i] = now - due
	}
	c.sig.kept.addLags(c.sent)
	c.sent = c.sent[:0]
	return err
}

// startFree gives lanes to calls in due order, so that the wait for a lane counts.
func (c *client) startFree() error {
	for len(c.resting) > 0 {
		begun, ok := c.due.next()
		if !ok {
			return nil
		}
		l := c.resting[len(c.resting)-1]
		c.resting = c.resting[:len(c.resting)-1]
		if err := c.start(l, begun); err != nil {
			return err
		}
		if c.sig.counts(begun) {
			c.sent = append(c.sent, begun)
		}
	}
	return nil
}

func (c *client) start(l *lane, begun time.Duration) error {
	c.stream = c.lanes.next(c.stream)
	l.stream, l.begun, l.got, l.headed = c.stream, begun, 0, false
	l.message = rawh2.AppendMessage(l.message[:0], c.plan.Size, uint32(c.plan.Answers), c.num, c.calls)
	c.calls++
	c.lanes.put(l)
	c.conn.Headers(c.stream, c.block, false)
	c.block = c.form.later
	err := c.conn.Send(c.stream, l.message, true, nil)
	c.stream += 2
	return err
}

// time is the time of the present batch.
func (c *client) time() time.Duration {
	if c.now == 0 {
		c.now = c.sig.now()
	}
	return c.now
}
