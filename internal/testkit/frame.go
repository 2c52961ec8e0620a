package testkit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// Kind says what a Peer has read: a frame type, with the acknowledgements of
// SETTINGS and PING apart from the frames that they acknowledge.
type Kind uint8

// The kinds of a Frame. HEADERS and the CONTINUATION frames after it are one
// Headers; Other is any other type (PRIORITY, PUSH_PROMISE, unknown ones).
// Closed is the end of the connection and always the last.
const (
	Data Kind = iota
	Headers
	RST
	Settings
	SettingsAck
	Ping
	PingAck
	GoAway
	WindowUpdate
	Other
	Closed
)

// String returns the name that RFC 9113, 6 gives to the frame type.
func (k Kind) String() string {
	names := [...]string{"DATA", "HEADERS", "RST_STREAM", "SETTINGS", "SETTINGS ack", "PING", "PING ack", "GOAWAY", "WINDOW_UPDATE", "other frame", "end of connection"}
	if int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("Kind(%d)", k)
}

// Field is one header field. Never marks a field that is (or is to be)
// encoded as "never indexed" (RFC 7541, 6.2.3).
type Field struct {
	Name, Value string
	Never       bool
}

// Fields makes an ordered header list of names and values that alternate. It
// panics when one is left over: that is a mistake in the test.
func Fields(kv ...string) []Field {
	if len(kv)%2 != 0 {
		panic(fmt.Sprintf("testkit.Fields: a name without a value in %q", kv))
	}
	fields := make([]Field, 0, len(kv)/2)
	for i := 0; i < len(kv); i += 2 {
		fields = append(fields, Field{Name: kv[i], Value: kv[i+1]})
	}
	return fields
}

// String renders a field as "name: value", marked when it is never indexed.
func (f Field) String() string {
	if f.Never {
		return fmt.Sprintf("%s: %q (never indexed)", f.Name, f.Value)
	}
	return fmt.Sprintf("%s: %q", f.Name, f.Value)
}

// Value returns the value of the first field called name, "" without one.
func Value(fields []Field, name string) string {
	for _, f := range fields {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

// Frame is one frame as a Peer read it. Only the members that its Kind has are
// set. All memory is the frame's own.
type Frame struct {
	Kind   Kind
	Stream uint32
	End    bool // END_STREAM of Data and Headers

	Flow     uint32          // Data: bytes that count for flow control, padding included
	Payload  []byte          // Data without padding; GoAway: debug data; Ping: 8 bytes; Other: raw payload
	Block    []byte          // Headers: the encoded header block, CONTINUATION joined
	Fields   []Field         // Headers: the decoded list, in order
	Settings []http2.Setting // Settings, in order
	Code     http2.ErrCode   // RST, GoAway
	Last     uint32          // GoAway: last stream id
	Incr     uint32          // WindowUpdate
	Type     http2.FrameType // Other
	Err      error           // Closed: why; io.EOF for an orderly end
}

// String renders a frame in one line for failure messages.
func (f Frame) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v", f.Kind)
	if f.Stream != 0 {
		fmt.Fprintf(&b, " stream=%d", f.Stream)
	}
	if f.End {
		b.WriteString(" END_STREAM")
	}
	switch f.Kind {
	case Data:
		fmt.Fprintf(&b, " %d bytes %s", len(f.Payload), clip(f.Payload))
	case Headers:
		for _, field := range f.Fields {
			fmt.Fprintf(&b, " [%v]", field)
		}
	case RST:
		fmt.Fprintf(&b, " %v", f.Code)
	case GoAway:
		fmt.Fprintf(&b, " last=%d %v %s", f.Last, f.Code, clip(f.Payload))
	case Settings:
		fmt.Fprintf(&b, " %v", f.Settings)
	case Ping, PingAck:
		fmt.Fprintf(&b, " %x", f.Payload)
	case WindowUpdate:
		fmt.Fprintf(&b, " +%d", f.Incr)
	case Other:
		fmt.Fprintf(&b, " %v %d bytes", f.Type, len(f.Payload))
	case Closed:
		fmt.Fprintf(&b, " (%v)", f.Err)
	case SettingsAck: // has nothing to show
	}
	return b.String()
}

func clip(b []byte) string {
	const most = 32 // bytes shown of a payload; enough to recognize a message
	if len(b) > most {
		return fmt.Sprintf("%q…", b[:most])
	}
	return fmt.Sprintf("%q", b)
}

// frameReader turns bytes into Frames: it joins CONTINUATION frames, decodes
// header blocks and copies what x/net's Framer would reuse. One goroutine uses
// it.
type frameReader struct {
	framer *http2.Framer
	hpack  *hpack.Decoder
}

func newFrameReader(r io.Reader) *frameReader {
	framer := http2.NewFramer(io.Discard, r)
	framer.AllowIllegalReads = true // a test says itself what it expects
	framer.SetMaxReadFrameSize(1<<24 - 1)
	return &frameReader{framer: framer, hpack: hpack.NewDecoder(4096, nil)}
}

// next reads one frame. Whatever ends the connection comes as a Closed.
func (r *frameReader) next() Frame {
	raw, err := r.framer.ReadFrame()
	if err != nil {
		if detail := r.framer.ErrorDetail(); detail != nil {
			err = fmt.Errorf("%w: %w", err, detail)
		}
		return Frame{Kind: Closed, Err: err}
	}
	f := Frame{Stream: raw.Header().StreamID}
	switch raw := raw.(type) {
	case *http2.DataFrame:
		f.Kind, f.End, f.Flow, f.Payload = Data, raw.StreamEnded(), raw.Length, bytes.Clone(raw.Data())
	case *http2.HeadersFrame:
		return r.headers(raw)
	case *http2.RSTStreamFrame:
		f.Kind, f.Code = RST, raw.ErrCode
	case *http2.SettingsFrame:
		f.settings(raw)
	case *http2.PingFrame:
		f.Kind, f.Payload = Ping, bytes.Clone(raw.Data[:])
		if raw.IsAck() {
			f.Kind = PingAck
		}
	case *http2.GoAwayFrame:
		f.Kind, f.Last, f.Code, f.Payload = GoAway, raw.LastStreamID, raw.ErrCode, bytes.Clone(raw.DebugData())
	case *http2.WindowUpdateFrame:
		f.Kind, f.Incr = WindowUpdate, raw.Increment
	case *http2.UnknownFrame:
		f.Kind, f.Type, f.Payload = Other, raw.Type, bytes.Clone(raw.Payload())
	default:
		f.Kind, f.Type = Other, raw.Header().Type
	}
	return f
}

func (f *Frame) settings(raw *http2.SettingsFrame) {
	f.Kind = Settings
	if raw.IsAck() {
		f.Kind = SettingsAck
	}
	for i := range raw.NumSettings() {
		f.Settings = append(f.Settings, raw.Setting(i))
	}
}

// headers joins a HEADERS frame with its CONTINUATION frames, between which no
// other frame may come (RFC 9113, 6.10).
func (r *frameReader) headers(first *http2.HeadersFrame) Frame {
	f := Frame{Kind: Headers, Stream: first.StreamID, End: first.StreamEnded(), Block: bytes.Clone(first.HeaderBlockFragment())}
	for done := first.HeadersEnded(); !done; {
		raw, err := r.framer.ReadFrame()
		if err != nil {
			return Frame{Kind: Closed, Err: fmt.Errorf("inside the header block of stream %d: %w", f.Stream, err)}
		}
		more, ok := raw.(*http2.ContinuationFrame)
		if !ok || more.StreamID != f.Stream {
			return Frame{Kind: Closed, Err: fmt.Errorf("%v inside the header block of stream %d", raw.Header(), f.Stream)}
		}
		f.Block = append(f.Block, more.HeaderBlockFragment()...)
		done = more.HeadersEnded()
	}
	fields, err := r.hpack.DecodeFull(f.Block)
	if err != nil {
		return Frame{Kind: Closed, Err: fmt.Errorf("header block %x of stream %d: %w", f.Block, f.Stream, err)}
	}
	for _, field := range fields {
		f.Fields = append(f.Fields, Field{Name: field.Name, Value: field.Value, Never: field.Sensitive})
	}
	return f
}

var errBadPreface = errors.New("the connection does not begin with the HTTP/2 preface")

// preface consumes what a client sends first (RFC 9113, 3.4).
func preface(r io.Reader) error {
	got := make([]byte, len(http2.ClientPreface))
	n, err := io.ReadFull(r, got)
	if string(got[:n]) != http2.ClientPreface[:n] {
		return fmt.Errorf("%w: %q", errBadPreface, got[:n])
	}
	return err
}
