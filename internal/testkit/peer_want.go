package testkit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"syscall"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
)

// take returns the frame that a verb wants, or fails the test.
func (p *Peer) take(kind Kind, stream uint32) Frame {
	p.t.Helper()
	want := fmt.Sprintf("%v stream=%d", kind, stream)
	late := time.NewTimer(patience)
	defer late.Stop()
	for i := 0; ; {
		for ; i < len(p.pending); i++ {
			f := p.pending[i]
			switch {
			case f.Kind == kind && kind == Closed:
				return f // stays, so that every later verb sees it
			case f.Kind == kind && f.Stream == stream:
				p.pending = slices.Delete(p.pending, i, i+1)
				return p.taken(f)
			case p.skip[f.Kind]:
				p.pending = slices.Delete(p.pending, i, i+1)
				i--
			case !p.passes(f, stream):
				p.fail("want %s, got %v", want, f)
			}
		}
		select {
		case f := <-p.frames:
			p.pending = append(p.pending, f)
		case <-late.C:
			p.fail("want %s, got nothing in %v", want, patience)
		}
	}
}

// passes says whether a verb for stream may pass over f and leave it.
func (p *Peer) passes(f Frame, stream uint32) bool {
	return p.anyOrder && f.Kind != Closed && (f.Stream != stream || stream == 0)
}

// taken returns the credit of a DATA frame if the Peer does that.
func (p *Peer) taken(f Frame) Frame {
	p.t.Helper()
	if p.refill && f.Flow > 0 {
		p.Batch(func() {
			p.WriteWindowUpdate(0, f.Flow)
			if !f.End {
				p.WriteWindowUpdate(f.Stream, f.Flow)
			}
		})
	}
	return f
}

// drop removes frames that have arrived and that no verb has taken.
func (p *Peer) drop(match func(Frame) bool) {
	for {
		select {
		case f := <-p.frames:
			p.pending = append(p.pending, f)
			continue
		default:
		}
		p.pending = slices.DeleteFunc(p.pending, match)
		return
	}
}

func (p *Peer) checkEnd(f Frame, end EndStream) {
	p.t.Helper()
	if f.End != bool(end) {
		p.fail("want END_STREAM %t, got %v", end, f)
	}
}

// WantHeaders takes a header block and returns its list in order.
func (p *Peer) WantHeaders(stream uint32, end EndStream) []Field {
	p.t.Helper()
	return p.WantBlock(stream, end).Fields
}

// WantBlock is WantHeaders for tests that look at the encoded block too.
func (p *Peer) WantBlock(stream uint32, end EndStream) Frame {
	p.t.Helper()
	f := p.take(Headers, stream)
	p.checkEnd(f, end)
	return f
}

// WantFields takes a header block that must hold exactly these names and
// values (alternating), in this order.
func (p *Peer) WantFields(stream uint32, end EndStream, kv ...string) {
	p.t.Helper()
	got := p.WantHeaders(stream, end)
	want := Fields(kv...)
	same := func(a, b Field) bool { return a.Name == b.Name && a.Value == b.Value }
	if !slices.EqualFunc(got, want, same) {
		p.fail("header list of stream %d:\n\tgot  %v\n\twant %v", stream, got, want)
	}
}

// WantData takes one DATA frame of any size and returns its bytes.
func (p *Peer) WantData(stream uint32, end EndStream) []byte {
	p.t.Helper()
	f := p.take(Data, stream)
	p.checkEnd(f, end)
	return f.Payload
}

// WantDataBytes takes as many DATA frames as it takes to read want, which the
// last of them must complete exactly. With End the stream must end with them,
// an empty DATA frame included; with NoEnd it must not.
func (p *Peer) WantDataBytes(stream uint32, want []byte, end EndStream) {
	p.t.Helper()
	var got []byte
	ended := false
	for !ended && (len(got) < len(want) || bool(end)) {
		f := p.take(Data, stream)
		got, ended = append(got, f.Payload...), f.End
		if !bytes.HasPrefix(want, got) {
			p.fail("stream %d: %d bytes of DATA %s are not the beginning of the %d wanted %s", stream, len(got), clip(got), len(want), clip(want))
		}
	}
	if len(got) != len(want) || ended != bool(end) {
		p.fail("stream %d: want %d bytes of DATA, END_STREAM %t, got %d, %t", stream, len(want), end, len(got), ended)
	}
}

// WantRST takes an RST_STREAM with this code.
func (p *Peer) WantRST(stream uint32, code http2.ErrCode) {
	p.t.Helper()
	if f := p.take(RST, stream); f.Code != code {
		p.fail("want %v, got %v", code, f)
	}
}

// WantGoAway takes a GOAWAY with this code and returns its last stream id.
func (p *Peer) WantGoAway(code http2.ErrCode) uint32 {
	p.t.Helper()
	f := p.take(GoAway, 0)
	if f.Code != code {
		p.fail("want %v, got %v", code, f)
	}
	return f.Last
}

// WantSettings takes a SETTINGS frame; of a repeated one the last value counts
// (RFC 9113, 6.5.3).
func (p *Peer) WantSettings() map[http2.SettingID]uint32 {
	p.t.Helper()
	values := map[http2.SettingID]uint32{}
	for _, s := range p.take(Settings, 0).Settings {
		values[s.ID] = s.Val
	}
	return values
}

// WantSettingsAck takes an acknowledgement of SETTINGS.
func (p *Peer) WantSettingsAck() {
	p.t.Helper()
	p.take(SettingsAck, 0)
}

// WantPing takes a PING and returns its data, for WritePingAck.
func (p *Peer) WantPing() [8]byte {
	p.t.Helper()
	return [8]byte(p.take(Ping, 0).Payload)
}

// WantPingAck takes the answer to a PING with this data.
func (p *Peer) WantPingAck(data [8]byte) {
	p.t.Helper()
	if f := p.take(PingAck, 0); [8]byte(f.Payload) != data {
		p.fail("want PING ack %x, got %v", data, f)
	}
}

// WantCredit waits until the WINDOW_UPDATE frames read for a stream add up to
// at least bytes, in however many frames. It takes none of them.
func (p *Peer) WantCredit(stream uint32, bytes int64) {
	p.t.Helper()
	what := fmt.Sprintf("%s: credit of %d bytes for stream %d", p.role, bytes, stream)
	Eventually(p.t, patience, what, func() bool { return p.Credit(stream) >= bytes })
}

// WantFrame takes the next frame, whatever it is, skipped kinds excepted.
func (p *Peer) WantFrame() Frame {
	p.t.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		p.drop(func(f Frame) bool { return p.skip[f.Kind] })
		if len(p.pending) > 0 {
			f := p.pending[0]
			p.pending = slices.Delete(p.pending, 0, 1)
			return p.taken(f)
		}
		select {
		case f := <-p.frames:
			p.pending = append(p.pending, f)
		case <-late.C:
			p.fail("want a frame, got nothing in %v", patience)
		}
	}
}

// WantIdle says that nothing more has come, skipped kinds excepted.
//
// In a synctest bubble this is proof: it waits until every goroutine of the
// bubble is blocked. Elsewhere two PING round trips show that the far end has
// read what was sent and has flushed at least once since; what still travels
// behind the far end is not seen.
func (p *Peer) WantIdle() {
	p.t.Helper()
	if !settle() {
		p.roundTrip()
		p.roundTrip()
	}
	p.drop(func(f Frame) bool { return p.skip[f.Kind] })
	if len(p.pending) > 0 {
		p.fail("want silence, got %v (and %d more)", p.pending[0], len(p.pending)-1)
	}
}

// roundTrip sends a PING and takes its answer, leaving everything else.
func (p *Peer) roundTrip() {
	p.t.Helper()
	p.pings++
	data := [8]byte{'i', 'd', 'l', 'e', '?', 0, 0, p.pings}
	before := p.anyOrder
	p.anyOrder = true
	p.WritePing(data)
	p.WantPingAck(data)
	p.anyOrder = before
}

// settle waits until the synctest bubble is blocked. It returns false outside
// of one, which package synctest tells only by a panic.
func settle() (inBubble bool) {
	defer func() {
		if recover() != nil {
			inBubble = false
		}
	}()
	synctest.Wait()
	return true
}

// WantClosed says that the far end closes the connection and sends nothing
// more before that, skipped kinds excepted. A reset counts as closing; a frame
// that cannot be parsed does not.
func (p *Peer) WantClosed() {
	p.t.Helper()
	f := p.take(Closed, 0)
	orderly := errors.Is(f.Err, io.EOF) || errors.Is(f.Err, io.ErrClosedPipe) || errors.Is(f.Err, syscall.ECONNRESET)
	if !orderly {
		p.fail("want the end of the connection, got %v", f)
	}
}
