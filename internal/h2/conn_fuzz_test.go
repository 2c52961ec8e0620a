package h2

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"golang.org/x/net/http2/hpack"

	"github.com/cabrank/cabrank/internal/testkit"
)

// echo answers every request with its own bytes, as a relay does with a
// worker's: credit goes back when they leave. What it is told of a stream must
// make sense: nothing behind the end of either kind, and one end for each.
type echo struct {
	conn    *Conn
	waiting map[*Stream][]byte
	ended   map[*Stream]bool
	begun   int // streams that were opened, by either side
	over    map[*Stream]bool
}

func newEcho(server bool, budget *Budget, block *Block) *echo {
	e := &echo{waiting: map[*Stream][]byte{}, ended: map[*Stream]bool{}, over: map[*Stream]bool{}}
	cfg := testConfig(server)
	cfg.MaxStreams, cfg.MaxHeaderList, cfg.OutputHigh = 20, 2000, 30000
	cfg.Window, cfg.MaxWindow, cfg.ConnWindow = 2000, 8000, 65536
	e.conn = NewConn(cfg, e, NewPool(budget), block, e)
	return e
}

func (e *echo) Dirty(*Conn)                   {}
func (e *echo) GoAway(*Conn, uint32, ErrCode) {}
func (e *echo) Pong(*Conn, [8]byte)           {}

func (e *echo) Accept(*Conn, *Block) *Stream {
	e.begun++
	return &Stream{}
}

// told panics if there is nothing more to be told of the stream.
func (e *echo) told(s *Stream) {
	if e.over[s] || e.ended[s] {
		panic("told of a stream that has ended")
	}
}

// end takes the one end of a stream.
func (e *echo) end(s *Stream) {
	if e.over[s] {
		panic("a stream has ended twice")
	}
	e.over[s] = true
	delete(e.waiting, s)
}

func (e *echo) Headers(s *Stream, b *Block, end bool) {
	e.told(s)
	if _, err := DecodeFields(b.Enc); err != nil {
		panic(err)
	}
	if !s.SentHead() {
		e.conn.WriteHeaders(s, false, statelessAnswer)
	}
	e.Data(s, nil, end)
}

func (e *echo) TooLarge(s *Stream, _ bool) {
	e.told(s)
	e.conn.Reset(s, Cancel)
	e.end(s)
}

func (e *echo) Data(s *Stream, p []byte, end bool) {
	e.told(s)
	e.waiting[s] = append(e.waiting[s], p...)
	e.ended[s] = end
	e.Writable(s)
}

func (e *echo) Writable(s *Stream) {
	p := e.waiting[s]
	for len(p) > 0 {
		n := min(len(p), e.conn.Writable(s))
		if n == 0 {
			e.conn.Want(s)
			break
		}
		e.conn.WriteData(s, p[:n], false)
		e.conn.Credit(s, n)
		p = p[n:]
	}
	e.waiting[s] = p
	if len(p) == 0 && e.ended[s] && s.SentHead() {
		e.conn.WriteHeaders(s, true, statelessTrailers)
		e.end(s)
	}
}

func (e *echo) Reset(s *Stream, _ ErrCode, _ bool) { e.end(s) }

func (e *echo) Lost(s *Stream, _ bool) { e.end(s) }

// step feeds one piece, half of the time takes part of the output.
func (e *echo) step(t *testing.T, piece []byte, out []byte) ([]byte, bool) {
	t.Helper()
	if err := e.conn.Feed(piece, 0); err != nil {
		return append(out, e.conn.Output()...), false
	}
	if n := len(e.conn.Output()); len(piece)%2 == 0 {
		out = append(out, e.conn.Output()[:n/2+1&n]...)
		e.conn.Sent(n/2 + 1&n)
	}
	e.check(t)
	return out, true
}

// check holds what must be true between any two calls.
func (e *echo) check(t *testing.T) {
	t.Helper()
	c, n := e.conn, 0
	c.Each(func(s *Stream) {
		n++
		testkit.Need(t, s.conn == c && c.streams.get(s.id) == s, "stream %d is not where it should be", s.id)
		if s.wants && s.sendWindow > 0 && !s.queued {
			t.Fatalf("stream %d waits and is in no list", s.id)
		}
	})
	testkit.Need(t, n == c.Streams(), "%d streams are counted, %d found", c.Streams(), n)
	testkit.Need(t, c.waiting.head == nil || c.room() <= 0, "a stream waits though there is room")
	testkit.Need(t, c.recvWindow >= 0 && c.pending() >= 0, "window %d, pending %d", c.recvWindow, c.pending())
}

// FuzzConn hands arbitrary bytes to an engine of either role: it never panics,
// writes frames and nothing else, and gives every buffer back.
func FuzzConn(f *testing.F) {
	f.Add(story(), uint8(0))
	f.Add(story(), uint8(7))
	f.Add(wire().settings().answer(1, false).data(1, true, "hello").goAway(1, NoError).b.Bytes(), uint8(3))
	for _, tt := range connErrors {
		w := wire()
		if tt.state.server {
			w.preface()
		}
		f.Add(w.settings().raw(tt.in.b.Bytes()).b.Bytes(), uint8(11))
	}
	f.Fuzz(func(t *testing.T, in []byte, size uint8) {
		for _, server := range []bool{true, false} {
			fuzzConn(t, server, in, int(size)+1)
		}
	})
}

func fuzzConn(t *testing.T, server bool, in []byte, size int) {
	t.Helper()
	budget, block := &Budget{Total: 1 << 20}, &Block{}
	e := newEcho(server, budget, block)
	var out []byte
	if !server {
		e.openSome(in)
	}
	for ok := true; ok && len(in) > 0; {
		n := min(size, len(in))
		out, ok = e.step(t, in[:n], out)
		in = in[n:]
	}
	e.conn.Close()
	testkit.Need(t, budget.Used() == 0 && e.conn.Streams() == 0, "after Close: %d bytes, %d streams", budget.Used(), e.conn.Streams())
	testkit.Need(t, len(e.over) == e.begun && len(e.waiting) == 0,
		"%d streams of %d have ended, %d wait", len(e.over), e.begun, len(e.waiting))
	checkFrames(t, server, out)
}

// openSome begins streams of a client, so that there is something to answer.
func (e *echo) openSome(in []byte) {
	for i := range min(len(in), 6) {
		s := &Stream{}
		e.begun++
		e.conn.Open(s, in[i]%2 == 0, statelessRequest)
		switch {
		case in[i]%5 == 0 && e.conn.Unsend(s):
			e.end(s)
		case in[i]%7 == 0:
			e.conn.Reset(s, Cancel)
			e.end(s)
		}
	}
}

// trafficNames and trafficValues are what FuzzTraffic makes fields of: those of
// gRPC, those with rules of their own, and every form of encoding.
func trafficNames() []string {
	return []string{
		":method", ":scheme", ":path", ":authority", ":status", "content-type", "te", "grpc-timeout", "grpc-status",
		"grpc-message", "user-agent", "x-forwarded-for", "cookie", "x-request-id", "connection", "Upper", "x y", "", ":protocol",
		"grpc-encoding", "authorization", "set-cookie", "x-" + strings.Repeat("n", 60), "transfer-encoding",
	}
}

func trafficValues() []string {
	return []string{
		"POST", "http", "/s/m", "a", "200", "application/grpc", "trailers", "10S", "0", "No free threads", "grpc-go/1.85.0",
		"", "CONNECT", "gzip", " space ", "a\nb", "\x00", "\xff\x80", strings.Repeat("v", 200), strings.Repeat("\\", 300), "100", "404",
		strings.Repeat("~", 1000),
	}
}

// traffic is the blocks of two connections that one shard reads in turn.
type traffic struct {
	t     *testing.T
	block Block // scratch that both share
	conns [2]*trafficConn
}

// trafficConn is one connection with the encoder of its peer.
type trafficConn struct {
	fuzzPeer
	enc  *hpack.Encoder
	buf  bytes.Buffer
	last []byte // the block before
	dead bool
}

func newTraffic(t *testing.T, watch *WatchList) *traffic {
	t.Helper()
	tr := &traffic{t: t}
	for i := range tr.conns {
		c := &trafficConn{fuzzPeer: fuzzPeer{
			ref: hpack.NewDecoder(4096, nil), ours: newDecoder(watch, 4096, fuzzMaxList), block: &tr.block,
		}}
		c.enc = hpack.NewEncoder(&c.buf)
		tr.conns[i] = c
	}
	return tr
}

// end closes the block that was put together, damages it as the script says,
// and has both decoders read it.
func (tr *traffic) end(c *trafficConn, how, where byte) {
	tr.t.Helper()
	block := bytes.Clone(c.buf.Bytes())
	c.buf.Reset()
	c.kind = Kind(how % 3)
	at := int(where) % (len(block) + 1)
	switch how / 3 % 8 {
	case 0:
		block = block[:at]
	case 1:
		block = append(block[:at:at], append([]byte{where}, block[at:]...)...)
	case 2:
		if at < len(block) {
			block[at] ^= 1 << (where & 7)
		}
	case 3:
		block = c.last
	}
	c.dead = c.dead || !c.step(tr.t, block)
	c.last = block
	checkBounds(tr.t, &c.ours.table, 4096)
}

// FuzzTraffic compares the transcoder with hpack over many blocks of two
// connections: the input says which fields an encoder with a dynamic table puts
// into them, when it changes the size of the table, which blocks come again,
// and what is damaged on the way.
func FuzzTraffic(f *testing.F) {
	call := []byte{0, 0, 1, 1, 2, 2, 3, 3, 5, 5, 6, 6}
	request, again, response := []byte{250, 24, 0}, []byte{250, 9, 0}, []byte{250, 25, 0}
	f.Add(join(call, request, again, again, []byte{4, 4, 5, 5}, response, []byte{8, 8}, []byte{250, 26, 0}))
	f.Add(join(call, []byte{8, 18}, request, []byte{251, 0, 100}, call, request, []byte{251, 16, 0}, call, request))
	f.Add(join([]byte{251, 0, 0, 251, 16, 0}, call, request, []byte{252}, call, request, []byte{252}, again))
	for how := range byte(24) { // every damage to every kind
		f.Add(join(call, request, call, []byte{250, how, 5}, call, request))
	}
	for name := range trafficNames() { // every name with a value of its own and a long one, twice, then never indexed
		for _, value := range []byte{byte(name), 18, 22} {
			field := []byte{byte(name), value}
			f.Add(join(field, request, field, []byte{250, 25, 0}, []byte{byte(name) | 128, value}, []byte{250, 26, 0}, again))
		}
	}
	watch := testWatch()
	f.Fuzz(func(t *testing.T, in []byte) { runTraffic(newTraffic(t, watch), in) })
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func runTraffic(tr *traffic, in []byte) {
	names, values := trafficNames(), trafficValues()
	c, at := tr.conns[0], 0
	for len(in) >= 3 && !c.dead && !tr.t.Failed() {
		op, arg := in[0], in[1]
		in = in[2:]
		switch op {
		case 250:
			tr.end(c, arg, in[0])
			in = in[1:]
		case 251:
			c.enc.SetMaxDynamicTableSize(uint32(binary.BigEndian.Uint16([]byte{arg, in[0]})))
			in = in[1:]
		case 252, 253:
			at = 1 - at
			c = tr.conns[at]
		default:
			_ = c.enc.WriteField(hpack.HeaderField{
				Name: names[int(op&127)%len(names)], Value: values[int(arg)%len(values)], Sensitive: op >= 128,
			})
		}
		if c.dead {
			c = tr.conns[1-at]
			at = 1 - at
		}
	}
}
