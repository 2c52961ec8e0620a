package h2

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/cabrank/cabrank/internal/testkit"
)

// testConfig is that of a small relay; each test changes what it is about.
func testConfig(server bool) *Config {
	c := &Config{
		Server: server, Watch: NewWatchList(":status", ":path"),
		MaxHeaderList: 16 << 10, Window: 64 << 10, MaxWindow: 1 << 20,
		ConnWindow: 1 << 20, OutputHigh: 256 << 10, Allow: WorkerAllowances(),
	}
	if server {
		c.MaxStreams, c.Allow = 250, CallerAllowances()
	}
	return c
}

// rig is an engine without a transport: bytes are fed in, frames are taken out
// as text, and what the handler was told is kept as text.
type rig struct {
	t       testing.TB
	cfg     *Config
	conn    *Conn
	budget  *Budget
	now     time.Duration // of what is fed in
	block   Block
	streams map[uint32]*Stream
	log     []string
	woken   int
	dec     *hpack.Decoder
	greeted bool // the greeting was taken from the output

	refuse     bool // Accept answers nil
	onAccept   func(b *Block)
	onHeaders  func(s *Stream, end bool)
	onData     func(s *Stream, p []byte, end bool)
	onWritable func(s *Stream)
	onTooLarge func(s *Stream)
	onGone     func(s *Stream)
}

// newRig makes an engine and checks at the end of the test that Close gives
// every buffer back.
func newRig(t testing.TB, server bool, change ...func(*Config)) *rig {
	t.Helper()
	r := &rig{
		t: t, cfg: testConfig(server), budget: &Budget{Total: 64 << 20},
		streams: map[uint32]*Stream{}, dec: hpack.NewDecoder(4096, nil),
	}
	for _, f := range change {
		f(r.cfg)
	}
	r.conn = NewConn(r.cfg, r, NewPool(r.budget), &r.block, r)
	t.Cleanup(r.close)
	return r
}

// newServer is the engine of a caller's connection that is past the greeting.
func newServer(t testing.TB, change ...func(*Config)) *rig {
	t.Helper()
	r := newRig(t, true, change...)
	r.feed(wire().preface().settings().settingsAck())
	r.frames()
	r.log = nil
	return r
}

// newClient is the engine of a worker's connection that is past the greeting.
func newClient(t testing.TB, change ...func(*Config)) *rig {
	t.Helper()
	r := newRig(t, false, change...)
	r.feed(wire().settings())
	r.frames()
	r.log = nil
	return r
}

func (r *rig) close() {
	r.conn.Close()
	testkit.Equal(r.t, r.budget.Used(), 0, "bytes of the budget are in use after Close")
	testkit.Equal(r.t, r.conn.Streams(), 0, "streams are open after Close")
}

// feed hands everything to the engine, which must take it.
func (r *rig) feed(w *wireBytes) {
	r.t.Helper()
	err := r.conn.Feed(w.b.Bytes(), r.now)
	testkit.Need(r.t, err == nil, "Feed: %v", err)
}

// fail hands in what the engine must refuse with this error.
func (r *rig) fail(w *wireBytes, want string) {
	r.t.Helper()
	err := r.conn.Feed(w.b.Bytes(), r.now)
	testkit.Need(r.t, err != nil && err.Error() == want, "Feed: got %v, want %s", err, want)
}

// open begins a stream of a client engine.
func (r *rig) open(end bool, block ...[]byte) *Stream {
	s := &Stream{}
	if len(block) == 0 {
		block = [][]byte{statelessRequest}
	}
	r.conn.Open(s, end, block...)
	r.streams[s.ID()] = s
	return s
}

var (
	statelessRequest  = stateless(":method", "POST", ":scheme", "http", ":path", "/s/m", ":authority", "a")
	statelessAnswer   = stateless(":status", "200")
	statelessTrailers = stateless("grpc-status", "0")
)

func stateless(kv ...string) (block []byte) {
	for i := 0; i < len(kv); i += 2 {
		block = AppendField(block, kv[i], kv[i+1])
	}
	return block
}

// wantFrames takes the output and compares it, one frame a line.
func (r *rig) wantFrames(want ...string) {
	r.t.Helper()
	r.same("output", r.frames(), want)
}

// wantLog compares what the handler was told since the last time.
func (r *rig) wantLog(want ...string) {
	r.t.Helper()
	r.same("told", r.log, want)
	r.log = nil
}

func (r *rig) same(what string, got, want []string) {
	r.t.Helper()
	testkit.Need(r.t, slices.Equal(got, want), "%s:\n\t%s\nwant:\n\t%s", what, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
}

// frames takes all output and renders it; frames of the peer's making are cut
// at its frame size.
func (r *rig) frames() []string {
	r.t.Helper()
	var out []byte
	for p := r.conn.Output(); len(p) > 0; p = r.conn.Output() {
		out = append(out, p...)
		r.conn.Sent(len(p))
	}
	if !r.greeted && !r.cfg.Server {
		out = bytes.TrimPrefix(out, []byte(Preface))
	}
	r.greeted = true
	return renderFrames(r.t, r.dec, out)
}

// Dirty implements Waker.
func (r *rig) Dirty(*Conn) { r.woken++ }

func (r *rig) note(format string, args ...any) { r.log = append(r.log, fmt.Sprintf(format, args...)) }

func ending(end bool) string {
	if end {
		return " END"
	}
	return ""
}

// Accept implements ConnHandler.
func (r *rig) Accept(_ *Conn, b *Block) *Stream {
	if r.onAccept != nil {
		r.onAccept(b)
	}
	if r.refuse {
		return nil
	}
	return &Stream{}
}

// Headers implements MessageHandler.
func (r *rig) Headers(s *Stream, b *Block, end bool) {
	fields, err := DecodeFields(b.Enc)
	testkit.Need(r.t, err == nil, "block of stream %d: %v", s.ID(), err)
	r.streams[s.ID()] = s
	r.note("headers %d%s%s", s.ID(), renderFields(fields), ending(end))
	if r.onHeaders != nil {
		r.onHeaders(s, end)
	}
}

// TooLarge implements MessageHandler.
func (r *rig) TooLarge(s *Stream, end bool) {
	r.streams[s.ID()] = s
	r.note("too large %d%s", s.ID(), ending(end))
	if r.onTooLarge != nil {
		r.onTooLarge(s)
	}
}

// Data implements MessageHandler.
func (r *rig) Data(s *Stream, p []byte, end bool) {
	r.note("data %d %s%s", s.ID(), brief(p), ending(end))
	if r.onData != nil {
		r.onData(s, p, end)
	}
}

// Reset implements EndHandler.
func (r *rig) Reset(s *Stream, code ErrCode, broken bool) {
	by := "peer"
	if broken {
		by = "engine"
	}
	r.note("reset %d %v by %s", s.ID(), code, by)
	r.gone(s)
}

// Lost implements EndHandler.
func (r *rig) Lost(s *Stream, sent bool) {
	r.note("lost %d sent=%t", s.ID(), sent)
	r.gone(s)
}

func (r *rig) gone(s *Stream) {
	testkit.Want(r.t, !s.Open(), "stream %d is open though the handler is told its end", s.ID())
	if r.onGone != nil {
		r.onGone(s)
	}
}

// Writable implements SendHandler.
func (r *rig) Writable(s *Stream) {
	testkit.Want(r.t, r.conn.Writable(s) >= 1, "stream %d is told that it is writable, and is not", s.ID())
	r.note("writable %d", s.ID())
	if r.onWritable != nil {
		r.onWritable(s)
	}
}

// GoAway implements ConnHandler.
func (r *rig) GoAway(_ *Conn, last uint32, code ErrCode) { r.note("goaway %d %v", last, code) }

// Pong implements ConnHandler.
func (r *rig) Pong(_ *Conn, data [8]byte) { r.note("pong %q", data[:]) }

// renderFields writes a list without the request's usual pseudo-header fields.
func renderFields(fields []Field) string {
	var b strings.Builder
	for _, f := range fields {
		if f.Name != ":method" && f.Name != ":scheme" && f.Name != ":authority" {
			fmt.Fprintf(&b, " %s=%s", f.Name, brief([]byte(f.Value)))
		}
	}
	return b.String()
}

func brief(p []byte) string {
	const most = 20
	if len(p) > most || bytes.IndexByte(p, 0) >= 0 {
		return fmt.Sprintf("(%d bytes)", len(p))
	}
	return string(p)
}

// renderFrames reads frames with x/net's Framer and writes a line for each.
func renderFrames(t testing.TB, dec *hpack.Decoder, out []byte) (lines []string) {
	t.Helper()
	framer := http2.NewFramer(nil, bytes.NewReader(out))
	framer.SetMaxReadFrameSize(1<<24 - 1)
	var block []byte
	for {
		f, err := framer.ReadFrame()
		if err != nil {
			if len(out) > 0 && err.Error() != "EOF" {
				t.Fatalf("the output is not made of frames: %v (%v)", err, framer.ErrorDetail())
			}
			return lines
		}
		id := f.Header().StreamID
		switch f := f.(type) {
		case *http2.DataFrame:
			lines = append(lines, fmt.Sprintf("DATA %d %s%s", id, brief(f.Data()), ending(f.StreamEnded())))
		case *http2.HeadersFrame:
			block = append(block[:0], f.HeaderBlockFragment()...)
			lines = append(lines, fmt.Sprintf("HEADERS %d%s%s", id, renderBlock(t, dec, block, f.HeadersEnded()), ending(f.StreamEnded())))
		case *http2.ContinuationFrame:
			block = append(block, f.HeaderBlockFragment()...)
			lines = append(lines, fmt.Sprintf("CONTINUATION %d%s", id, renderBlock(t, dec, block, f.HeadersEnded())))
		case *http2.RSTStreamFrame:
			lines = append(lines, fmt.Sprintf("RST %d %v", id, ErrCode(f.ErrCode)))
		case *http2.SettingsFrame:
			lines = append(lines, renderSettings(f))
		case *http2.PingFrame:
			lines = append(lines, fmt.Sprintf("PING %q ack=%t", f.Data[:], f.IsAck()))
		case *http2.GoAwayFrame:
			lines = append(lines, fmt.Sprintf("GOAWAY %d %v %s", f.LastStreamID, ErrCode(f.ErrCode), f.DebugData()))
		case *http2.WindowUpdateFrame:
			lines = append(lines, fmt.Sprintf("WINDOW %d +%d", id, f.Increment))
		default:
			t.Fatalf("a frame that we never send: %v", f)
		}
	}
}

func renderBlock(t testing.TB, dec *hpack.Decoder, block []byte, whole bool) string {
	t.Helper()
	if !whole {
		return " ..."
	}
	decoded, err := dec.DecodeFull(block)
	testkit.Need(t, err == nil, "header block %x: %v", block, err)
	fields := make([]Field, len(decoded))
	for i, f := range decoded {
		fields[i] = Field{Name: f.Name, Value: f.Value}
	}
	return renderFields(fields)
}

func renderSettings(f *http2.SettingsFrame) string {
	if f.IsAck() {
		return "SETTINGS ack"
	}
	line := "SETTINGS"
	for i := range f.NumSettings() {
		line += fmt.Sprintf(" %v=%d", f.Setting(i).ID, f.Setting(i).Val)
	}
	return line
}

// checkFrames says that out consists of whole frames, the last one excepted,
// that x/net's Framer accepts, and of header blocks that hpack accepts.
func checkFrames(t testing.TB, server bool, out []byte) {
	t.Helper()
	if !server {
		out = bytes.TrimPrefix(out, []byte(Preface))
	}
	whole := 0
	for at := 0; len(out)-at >= frameHeaderLen; at = whole {
		h := parseFrameHeader(out[at:])
		if at+frameHeaderLen+int(h.length) > len(out) {
			break
		}
		whole = at + frameHeaderLen + int(h.length)
	}
	framer := http2.NewFramer(nil, bytes.NewReader(out[:whole]))
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	for {
		if _, err := framer.ReadFrame(); err != nil {
			testkit.Need(t, err.Error() == "EOF", "the output is not made of frames: %v (%v)", err, framer.ErrorDetail())
			return
		}
	}
}

// newDecoder returns a decoder; see Decoder.Init.
func newDecoder(watch *WatchList, maxTableSize uint32, maxListSize int) *Decoder {
	d := new(Decoder)
	d.Init(watch, maxTableSize, maxListSize)
	return d
}
