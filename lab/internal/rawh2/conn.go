// Package rawh2 is the least HTTP/2 that the raw client and its backends need, so that they cost
// little beside the proxy between them: blocking reads into one big buffer, frames by hand,
// header blocks encoded once, one write per batch that was read.
//
// It is no HTTP/2 implementation. A message must fit in one DATA frame and a header block in one
// HEADERS frame, stream windows are not counted (a message must fit in the initial one), and
// whatever does not keep to that ends the connection with an error instead of being handled.
package rawh2

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"sync"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const (
	maxPayload = 16384 // the largest DATA frame that is sent; every peer takes it
	// ourWindow is what we let a peer send on the connection; it is topped up
	// when half is used, so that credit frames hardly ever disturb.
	ourWindow       = 1 << 30
	ourStreamWindow = 1 << 24   // what we let a peer send on one stream, for good
	readBuffer      = 256 << 10 // several of the largest frames
	// SmallReadBuffer takes one of the largest frames: for thousands of
	// connections that hardly do anything.
	SmallReadBuffer = headerBytes + maxPayload

	headerBytes = 9
)

// Frame is a HEADERS, DATA, RST_STREAM or GOAWAY frame without its padding and
// priority. Payload is valid until the handler returns.
type Frame struct {
	Type    http2.FrameType
	Flags   http2.Flags
	Stream  uint32
	Payload []byte
}

// Ended says whether the frame carries END_STREAM.
func (f Frame) Ended() bool { return f.Flags.Has(http2.FlagDataEndStream) }

// Handler is told what comes in. It appends answers to the connection by Send
// and Headers. An error of either method ends the connection.
type Handler interface {
	// Frame takes one frame.
	Frame(f Frame) error
	// BatchRead is called when all that was read has been handled, before what
	// was appended is written.
	BatchRead() error
}

// Conn is one connection. Headers, Send and Flush may be called by the handler
// and within Do, which never run at the same time.
type Conn struct {
	net.Conn
	client bool

	// Owned by Serve.
	in         []byte
	begin, end int // unparsed part of in

	mu  sync.Mutex // held while a handler runs, never while reading
	out []byte

	window       int64 // bytes of DATA that the peer still takes
	streamWindow int64 // its SETTINGS_INITIAL_WINDOW_SIZE
	waiting      []parcel
	taken        int64 // bytes of DATA read since our last credit
}

// parcel is a DATA frame that waits for window, and the frames after it.
type parcel struct {
	stream uint32
	data   []byte
	ends   bool
	after  []byte
}

// NewConn wraps a connection; client says which side sends the preface, buffer
// is the most that is read at once, in bytes, at least SmallReadBuffer. The
// opening frames go out with the first Flush.
func NewConn(c net.Conn, client bool, buffer int) *Conn {
	conn := &Conn{Conn: c, client: client, in: make([]byte, buffer), window: 65535, streamWindow: 65535}
	if client {
		conn.out = append(conn.out, http2.ClientPreface...)
	}
	conn.out = appendHeader(conn.out, 18, http2.FrameSettings, 0, 0)
	conn.out = appendSetting(conn.out, http2.SettingHeaderTableSize, 0) // no dynamic table: equal blocks mean equal headers
	conn.out = appendSetting(conn.out, http2.SettingEnablePush, 0)
	conn.out = appendSetting(conn.out, http2.SettingInitialWindowSize, ourStreamWindow)
	conn.out = appendWindowUpdate(conn.out, ourWindow-65535)
	return conn
}

// Headers appends a HEADERS frame with a whole block.
func (c *Conn) Headers(stream uint32, block []byte, end bool) {
	c.out = AppendHeaders(c.out, stream, block, end)
}

// Send appends a DATA frame, and after it the ready-made frames in after. If
// the peer's window has no room, all of it waits in order.
func (c *Conn) Send(stream uint32, data []byte, end bool, after []byte) error {
	size := int64(len(data))
	if size > maxPayload || size > c.streamWindow {
		return fmt.Errorf("a message of %d bytes does not fit in a frame of %d or a stream window of %d", size, maxPayload, c.streamWindow)
	}
	if size > c.window || len(c.waiting) > 0 {
		c.waiting = append(c.waiting, parcel{stream, append([]byte(nil), data...), end, append([]byte(nil), after...)})
		return nil
	}
	c.post(stream, data, end, after)
	return nil
}

func (c *Conn) post(stream uint32, data []byte, end bool, after []byte) {
	c.window -= int64(len(data))
	var flags http2.Flags
	if end {
		flags = http2.FlagDataEndStream
	}
	c.out = appendHeader(c.out, len(data), http2.FrameData, flags, stream)
	c.out = append(append(c.out, data...), after...)
}

// postWaiting sends what the window has room for now, in order.
func (c *Conn) postWaiting() {
	n := 0
	for _, p := range c.waiting {
		if int64(len(p.data)) > c.window {
			break
		}
		c.post(p.stream, p.data, p.ends, p.after)
		n++
	}
	c.waiting = append(c.waiting[:0], c.waiting[n:]...)
}

// Flush writes what has been appended.
func (c *Conn) Flush() error {
	if len(c.out) == 0 {
		return nil
	}
	_, err := c.Write(c.out)
	c.out = c.out[:0]
	return err
}

// Do runs f between two batches of Serve and writes what f has appended. Any
// goroutine but the handler's may call it.
func (c *Conn) Do(f func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := f(); err != nil {
		return err
	}
	return c.Flush()
}

// Serve reads until the connection ends or a handler returns an error, and
// writes once for every read.
func (c *Conn) Serve(h Handler) error {
	if err := c.readPreface(); err != nil {
		return err
	}
	batch := func() error {
		if err := c.handleRead(h); err != nil {
			return err
		}
		return h.BatchRead()
	}
	for {
		if err := c.Do(batch); err != nil {
			return err
		}
		if err := c.fill(); err != nil {
			return err
		}
	}
}

func (c *Conn) readPreface() error {
	if c.client {
		return nil
	}
	for c.end-c.begin < len(http2.ClientPreface) {
		if err := c.fill(); err != nil {
			return err
		}
	}
	if got := c.in[c.begin : c.begin+len(http2.ClientPreface)]; string(got) != http2.ClientPreface {
		return fmt.Errorf("not an HTTP/2 preface: %q", got)
	}
	c.begin += len(http2.ClientPreface)
	return nil
}

// fill reads once, behind the unparsed part.
func (c *Conn) fill() error {
	if c.begin > 0 {
		c.end = copy(c.in, c.in[c.begin:c.end])
		c.begin = 0
	}
	n, err := c.Read(c.in[c.end:])
	c.end += n
	return err
}

// handleRead takes all whole frames from the buffer.
func (c *Conn) handleRead(h Handler) error {
	for c.end-c.begin >= headerBytes {
		b := c.in[c.begin:c.end]
		size := int(b[0])<<16 | int(b[1])<<8 | int(b[2])
		if size > maxPayload {
			return fmt.Errorf("a frame of %d bytes, announced were %d", size, maxPayload)
		}
		if len(b) < headerBytes+size {
			return nil
		}
		f := Frame{Type: http2.FrameType(b[3]), Flags: http2.Flags(b[4]), Stream: binary.BigEndian.Uint32(b[5:]) &^ (1 << 31), Payload: b[headerBytes : headerBytes+size]}
		c.begin += headerBytes + size
		if err := c.handle(f, h); err != nil {
			return err
		}
	}
	return nil
}

func (c *Conn) handle(f Frame, h Handler) error {
	switch f.Type {
	case http2.FrameData:
		c.credit(len(f.Payload))
		if err := f.unpad(); err != nil {
			return err
		}
		return h.Frame(f)
	case http2.FrameHeaders:
		if !f.Flags.Has(http2.FlagHeadersEndHeaders) {
			return fmt.Errorf("stream %d: a header block in several frames", f.Stream)
		}
		if err := f.unpad(); err != nil {
			return err
		}
		return h.Frame(f)
	case http2.FrameRSTStream, http2.FrameGoAway:
		return h.Frame(f)
	case http2.FrameSettings:
		return c.settings(f)
	case http2.FramePing:
		if !f.Flags.Has(http2.FlagPingAck) {
			c.out = append(appendHeader(c.out, len(f.Payload), http2.FramePing, http2.FlagPingAck, 0), f.Payload...)
		}
	case http2.FrameWindowUpdate:
		if f.Stream == 0 && len(f.Payload) == 4 {
			c.window += int64(binary.BigEndian.Uint32(f.Payload))
			c.postWaiting()
		}
	default: // PRIORITY; and RFC 9113, 4.1: unknown types are ignored
	}
	return nil
}

// credit returns what was read to the peer's connection window.
func (c *Conn) credit(n int) {
	c.taken += int64(n)
	if c.taken >= ourWindow/2 {
		c.out = appendWindowUpdate(c.out, uint32(c.taken))
		c.taken = 0
	}
}

func (c *Conn) settings(f Frame) error {
	if f.Flags.Has(http2.FlagSettingsAck) {
		return nil
	}
	for b := f.Payload; len(b) >= 6; b = b[6:] {
		if http2.SettingID(binary.BigEndian.Uint16(b)) == http2.SettingInitialWindowSize {
			c.streamWindow = int64(binary.BigEndian.Uint32(b[2:]))
		}
	}
	c.out = appendHeader(c.out, 0, http2.FrameSettings, http2.FlagSettingsAck, 0)
	return nil
}

// unpad removes padding and priority (RFC 9113, 6.1 and 6.2).
func (f *Frame) unpad() error {
	b := f.Payload
	pad := 0
	if f.Flags.Has(http2.FlagDataPadded) && len(b) > 0 {
		pad, b = int(b[0]), b[1:]
	}
	if f.Type == http2.FrameHeaders && f.Flags.Has(http2.FlagHeadersPriority) && len(b) >= 5 {
		b = b[5:]
	}
	if pad > len(b) {
		return fmt.Errorf("stream %d: padding of %d in a frame of %d bytes", f.Stream, pad, len(f.Payload))
	}
	f.Payload = b[:len(b)-pad]
	return nil
}

// AppendHeaders appends a HEADERS frame with a whole header block.
func AppendHeaders(b []byte, stream uint32, block []byte, end bool) []byte {
	flags := http2.FlagHeadersEndHeaders
	if end {
		flags |= http2.FlagHeadersEndStream
	}
	return append(appendHeader(b, len(block), http2.FrameHeaders, flags, stream), block...)
}

func appendHeader(b []byte, size int, kind http2.FrameType, flags http2.Flags, stream uint32) []byte {
	b = append(b, byte(size>>16), byte(size>>8), byte(size), byte(kind), byte(flags))
	return binary.BigEndian.AppendUint32(b, stream)
}

func appendSetting(b []byte, id http2.SettingID, value uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(b, uint16(id)), value)
}

func appendWindowUpdate(b []byte, bytes uint32) []byte {
	return binary.BigEndian.AppendUint32(appendHeader(b, 4, http2.FrameWindowUpdate, 0, 0), bytes)
}

// Blocks encodes one header list (names and values alternating) twice, for the
// first use on a connection, which sets the dynamic table to 0 bytes, and for all
// later ones, which are stateless.
func Blocks(kv ...string) (first, later []byte) {
	var b bytes.Buffer
	enc := hpack.NewEncoder(&b)
	enc.SetMaxDynamicTableSize(0)
	encode := func() []byte {
		b.Reset()
		for i := 0; i < len(kv); i += 2 {
			enc.WriteField(hpack.HeaderField{Name: kv[i], Value: kv[i+1]}) //nolint:errcheck // a buffer takes everything
		}
		return bytes.Clone(b.Bytes())
	}
	return encode(), encode()
}

// BlockMemo remembers header blocks that hold wanted values. It is sound only
// while the peer may not use a dynamic table, as after our SETTINGS.
type BlockMemo struct {
	good [4][]byte // bounds the memo; proxies use one or two forms
	next int
}

// Holds says whether the block has every wanted name with its value (names and
// values alternating). A memo must always be asked for the same ones.
func (m *BlockMemo) Holds(block []byte, kv ...string) bool {
	if slices.ContainsFunc(m.good[:], func(g []byte) bool { return g != nil && bytes.Equal(g, block) }) {
		return true
	}
	fields, err := hpack.NewDecoder(4096, nil).DecodeFull(block)
	if err != nil {
		return false
	}
	for i := 0; i < len(kv); i += 2 {
		if !slices.Contains(fields, hpack.HeaderField{Name: kv[i], Value: kv[i+1]}) {
			return false
		}
	}
	m.good[m.next] = bytes.Clone(block)
	m.next = (m.next + 1) % len(m.good)
	return true
}
