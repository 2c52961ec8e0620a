package testkit

import (
	"bytes"
	"fmt"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// EndStream says whether a frame carries END_STREAM.
type EndStream bool

// The two values of EndStream.
const (
	End   EndStream = true
	NoEnd EndStream = false
)

// maxFrame is the largest frame that any peer must take (RFC 9113, 4.2).
const maxFrame = 16384

// Greet exchanges what opens a connection and waits until both sides have
// acknowledged the other's SETTINGS. It returns the other side's SETTINGS.
//
// A caller writes the preface first, a worker has read it. WINDOW_UPDATE of
// the connection among these frames counts in Credit and is dropped; frames of
// streams (a relay does not wait for the acknowledgement) are left to the
// verbs after it.
func (p *Peer) Greet(settings ...http2.Setting) map[http2.SettingID]uint32 {
	p.t.Helper()
	p.Batch(func() {
		if p.role == "caller" {
			p.WriteRaw([]byte(http2.ClientPreface))
		}
		p.WriteSettings(settings...)
	})
	theirs := p.WantSettings()
	p.WriteSettingsAck()
	strict := p.anyOrder
	p.anyOrder = true
	p.WantSettingsAck()
	p.anyOrder = strict
	p.drop(func(f Frame) bool { return f.Kind == WindowUpdate && f.Stream == 0 })
	return theirs
}

// flush sends what the verbs have put together, unless a batch is open.
func (p *Peer) flush() {
	p.t.Helper()
	for !p.batching && p.held.Len() > 0 {
		part := p.held.Len()
		if p.dribble > 0 {
			part = min(part, p.dribble)
		}
		p.conn.SetWriteDeadline(time.Now().Add(patience)) //nolint:errcheck // Write tells
		if _, err := p.conn.Write(p.held.Next(part)); err != nil {
			p.held.Reset()
			if !p.fragile {
				p.fail("write: %v", err)
			}
		}
	}
}

// wrote finishes a verb that has put a frame into the buffer.
func (p *Peer) wrote(err error, format string, args ...any) {
	p.t.Helper()
	if err != nil {
		p.fail("compose a frame: %v", err)
	}
	p.note("->", fmt.Sprintf(format, args...))
	p.flush()
}

// WriteRaw sends bytes as they are.
func (p *Peer) WriteRaw(b []byte) {
	p.t.Helper()
	p.held.Write(b)
	p.wrote(nil, "%d raw bytes %s", len(b), clip(b))
}

// WriteFrame sends one frame of any type with the given payload.
func (p *Peer) WriteFrame(t http2.FrameType, flags http2.Flags, stream uint32, payload []byte) {
	p.t.Helper()
	p.wrote(p.framer.WriteRawFrame(t, flags, stream, payload), "%v stream=%d flags=%#x %d bytes", t, stream, uint8(flags), len(payload))
}

// Encode makes a header block of names and values that alternate, with the
// dynamic table of this connection: the block must be sent, and in order.
func (p *Peer) Encode(kv ...string) []byte {
	p.t.Helper()
	return p.EncodeFields(Fields(kv...))
}

// EncodeFields is Encode for a list that has never-indexed fields.
func (p *Peer) EncodeFields(fields []Field) []byte {
	p.t.Helper()
	p.block.Reset()
	for _, f := range fields {
		if err := p.encoder.WriteField(hpack.HeaderField{Name: f.Name, Value: f.Value, Sensitive: f.Never}); err != nil {
			p.fail("encode %q: %v", f.Name, err)
		}
	}
	return bytes.Clone(p.block.Bytes())
}

// WriteHeaders sends a header list, names and values alternating. A block of
// more than 16,384 bytes goes on in CONTINUATION frames, in the same write.
func (p *Peer) WriteHeaders(stream uint32, end EndStream, kv ...string) {
	p.t.Helper()
	p.WriteFields(stream, end, Fields(kv...))
}

// WriteFields is WriteHeaders for a list that has never-indexed fields.
func (p *Peer) WriteFields(stream uint32, end EndStream, fields []Field) {
	p.t.Helper()
	p.WriteBlock(stream, end, p.EncodeFields(fields), maxFrame)
}

// WriteBlock sends a header block cut into one HEADERS and as many
// CONTINUATION frames of at most size bytes as it takes, in one write.
func (p *Peer) WriteBlock(stream uint32, end EndStream, block []byte, size int) {
	p.t.Helper()
	outer := p.batching
	p.batching = true
	first := block[:min(size, len(block))]
	p.WriteHeadersFragment(stream, end, len(first) == len(block), first)
	for rest := block[len(first):]; len(rest) > 0; {
		part := rest[:min(size, len(rest))]
		rest = rest[len(part):]
		p.WriteContinuation(stream, len(rest) == 0, part)
	}
	p.batching = outer
	p.flush()
}

// WriteHeadersFragment sends one HEADERS frame with a piece of a header block;
// last sets END_HEADERS.
func (p *Peer) WriteHeadersFragment(stream uint32, end EndStream, last bool, fragment []byte) {
	p.t.Helper()
	err := p.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, EndStream: bool(end), EndHeaders: last, BlockFragment: fragment})
	p.wrote(err, "HEADERS stream=%d end=%t last=%t block %x", stream, end, last, fragment[:min(64, len(fragment))])
}

// WriteContinuation sends one CONTINUATION frame; last sets END_HEADERS.
func (p *Peer) WriteContinuation(stream uint32, last bool, fragment []byte) {
	p.t.Helper()
	p.wrote(p.framer.WriteContinuation(stream, last, fragment), "CONTINUATION stream=%d last=%t %d bytes", stream, last, len(fragment))
}

// WriteData sends one DATA frame, whatever its size and the window.
func (p *Peer) WriteData(stream uint32, end EndStream, data []byte) {
	p.t.Helper()
	p.sent[stream] += int64(len(data))
	p.sent[0] += int64(len(data))
	p.wrote(p.framer.WriteData(stream, bool(end), data), "DATA stream=%d end=%t %d bytes %s", stream, end, len(data), clip(data))
}

// WritePadded sends one DATA frame with pad bytes of padding (at most 255);
// the pad length octet comes on top and counts for flow control.
func (p *Peer) WritePadded(stream uint32, end EndStream, data []byte, pad int) {
	p.t.Helper()
	p.sent[stream] += int64(len(data) + 1 + pad)
	p.sent[0] += int64(len(data) + 1 + pad)
	p.wrote(p.framer.WriteDataPadded(stream, bool(end), data, make([]byte, pad)), "DATA stream=%d end=%t %d bytes, %d padding", stream, end, len(data), pad)
}

// WriteBody sends data in DATA frames of at most 16,384 bytes as far as the
// windows allow, waiting for credit as a correct sender does.
func (p *Peer) WriteBody(stream uint32, end EndStream, data []byte) {
	p.t.Helper()
	for first := true; first || len(data) > 0; first = false {
		n := 0
		if len(data) > 0 {
			Eventually(p.t, patience, fmt.Sprintf("%s: credit for stream %d", p.role, stream), func() bool {
				n = int(min(int64(len(data)), maxFrame, p.Window(stream)))
				return n > 0
			})
		}
		p.WriteData(stream, EndStream(bool(end) && n == len(data)), data[:n])
		data = data[n:]
	}
}

// Sent returns how many bytes of DATA were sent on a stream (0: the connection),
// padding included.
func (p *Peer) Sent(stream uint32) int64 { return p.sent[stream] }

// Window is what may still be sent on a stream: the smaller of its own window
// and the connection's (RFC 9113, 6.9.1).
func (p *Peer) Window(stream uint32) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	own := p.initial + p.credit[stream] - p.sent[stream]
	return min(own, 65535+p.credit[0]-p.sent[0])
}

// WriteRST sends RST_STREAM.
func (p *Peer) WriteRST(stream uint32, code http2.ErrCode) {
	p.t.Helper()
	p.wrote(p.framer.WriteRSTStream(stream, code), "RST_STREAM stream=%d %v", stream, code)
}

// WriteSettings sends SETTINGS.
func (p *Peer) WriteSettings(settings ...http2.Setting) {
	p.t.Helper()
	p.wrote(p.framer.WriteSettings(settings...), "SETTINGS %v", settings)
}

// WriteSettingsAck acknowledges SETTINGS.
func (p *Peer) WriteSettingsAck() {
	p.t.Helper()
	p.wrote(p.framer.WriteSettingsAck(), "SETTINGS ack")
}

// WritePing sends PING.
func (p *Peer) WritePing(data [8]byte) {
	p.t.Helper()
	p.wrote(p.framer.WritePing(false, data), "PING %x", data)
}

// WritePingAck answers PING.
func (p *Peer) WritePingAck(data [8]byte) {
	p.t.Helper()
	p.wrote(p.framer.WritePing(true, data), "PING ack %x", data)
}

// WriteGoAway sends GOAWAY.
func (p *Peer) WriteGoAway(last uint32, code http2.ErrCode, debug string) {
	p.t.Helper()
	p.wrote(p.framer.WriteGoAway(last, code, []byte(debug)), "GOAWAY last=%d %v %q", last, code, debug)
}

// WriteWindowUpdate sends WINDOW_UPDATE; stream 0 is the connection.
func (p *Peer) WriteWindowUpdate(stream, incr uint32) {
	p.t.Helper()
	p.wrote(p.framer.WriteWindowUpdate(stream, incr), "WINDOW_UPDATE stream=%d +%d", stream, incr)
}

// CloseWrite ends the sending direction, if the connection can (TCP, Unix).
func (p *Peer) CloseWrite() {
	p.t.Helper()
	half, ok := p.conn.(interface{ CloseWrite() error })
	if !ok {
		p.fail("%T has no half-close", p.conn)
	}
	p.wrote(half.CloseWrite(), "FIN")
}
