package relay

import (
	"bytes"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/cabrank/cabrank/internal/shard"
)

// peer is the far end of one connection of the relay: a caller or a worker that can
// write any frame, and judges what it is sent. Every byte goes in and out by hand.
type peer struct {
	*judge
	next  uint32 // a caller's next stream
	acked int    // SETTINGS of the engine that were acknowledged

	w    *world
	link *shard.Link
	e    *Endpoint     // of a worker
	cc   *callerConn   // of a caller
	uc   *upstreamConn // of a worker
	dead bool          // the engine or the far end has ended the connection

	out    bytes.Buffer // the bytes that framer writes
	framer *http2.Framer
	enc    *hpack.Encoder
	list   bytes.Buffer
}

func newPeer(w *world, worker bool) *peer {
	f := &peer{judge: newJudge(w.t, worker), next: 1, w: w}
	f.framer = http2.NewFramer(&f.out, nil)
	f.framer.AllowIllegalWrites = true
	f.enc = hpack.NewEncoder(&f.list)
	return f
}

// greet begins the connection, as a peer does.
func (f *peer) greet(settings ...http2.Setting) {
	if !f.worker {
		f.out.WriteString(http2.ClientPreface)
	}
	_ = f.framer.WriteSettings(settings...)
	f.flush()
}

// keepUp answers what any peer must answer.
func (f *peer) keepUp() {
	for ; f.acked < f.settled; f.acked++ {
		_ = f.framer.WriteSettingsAck()
	}
	for _, ping := range f.asked {
		_ = f.framer.WritePing(true, ping)
	}
	f.asked = nil
}

// flush hands in what the framer has written.
func (f *peer) flush() {
	f.t.Helper()
	p := bytes.Clone(f.out.Bytes())
	f.out.Reset()
	f.hand(p)
}

func (f *peer) encode(fields ...string) []byte {
	f.list.Reset()
	for i := 0; i < len(fields); i += 2 {
		_ = f.enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return bytes.Clone(f.list.Bytes())
}

func (f *peer) headers(stream uint32, last bool, fields ...string) {
	_ = f.framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: stream, EndStream: last, EndHeaders: true, BlockFragment: f.encode(fields...),
	})
}

// data writes a body in frames.
func (f *peer) data(stream uint32, last bool, size int) {
	for ; size > 16<<10; size -= 16 << 10 {
		_ = f.framer.WriteData(stream, false, make([]byte, 16<<10))
	}
	if size > 0 || last {
		_ = f.framer.WriteData(stream, last, make([]byte, size))
	}
}

// write has the far end write one frame that the script describes: whole, with
// every number a choice, so that a fuzzer comes further than by luck.
func (f *peer) write(s *script, lists [][]string) {
	kind, choice := s.byte(), s.byte()
	stream := f.pick(s.byte())
	last, fr := choice&1 == 1, f.framer
	switch kind % 16 {
	case 0, 1, 2: // a new stream of a caller, an answer of a worker
		if !f.worker {
			stream = f.next
			f.next += 2
		}
		f.headers(stream, last, lists[int(choice>>1)%len(lists)]...)
	case 3:
		f.headers(stream, last, lists[int(choice>>1)%len(lists)]...)
	case 4, 5:
		_ = fr.WriteData(stream, last, make([]byte, 8*int(choice>>1)))
	case 6:
		_ = fr.WriteDataPadded(stream, last, make([]byte, choice>>4), make([]byte, s.byte()))
	case 7:
		_ = fr.WriteData(stream, last, make([]byte, min(s.number(), 20_000)))
	case 8:
		_ = fr.WriteRSTStream(stream, http2.ErrCode(choice>>1%16))
	case 9:
		if choice&2 == 2 {
			stream = 0
		}
		_ = fr.WriteWindowUpdate(stream, s.number()&(1<<31-1))
	case 10:
		_ = fr.WriteSettings(http2.Setting{ID: http2.SettingID(choice % 8), Val: s.number()})
	case 11:
		_ = fr.WritePing(last, [8]byte{choice})
	case 12:
		_ = fr.WriteGoAway(stream*uint32(choice&2)+s.number()&(1<<31-1)*uint32(choice&1), http2.ErrCode(choice>>4), nil)
	case 13:
		f.fragments(s, stream, choice, lists[int(choice>>1)%len(lists)])
	case 14:
		f.enc.SetMaxDynamicTableSize(s.number() % 5000)
		_ = fr.WriteSettingsAck()
	case 15:
		_ = fr.WriteRawFrame(http2.FrameType(s.byte()%12), http2.Flags(choice), stream*uint32(choice>>1&1), s.bytes(int(s.byte()%32)))
	}
}

// pick chooses a stream near the last one.
func (f *peer) pick(b byte) uint32 {
	if b == 255 {
		return 0
	}
	last := f.lastOwn
	if !f.worker {
		last = max(f.next, 2) - 2
	}
	return max(last+2, uint32(2*(b%8))) - uint32(2*(b%8)) + uint32(b>>7)
}

// fragments cuts a header block into HEADERS and CONTINUATION frames.
func (f *peer) fragments(s *script, stream uint32, choice byte, list []string) {
	if !f.worker {
		stream = f.next
		f.next += 2
	}
	block, size := f.encode(list...), 1+int(s.byte())
	first := block[:min(size, len(block))]
	_ = f.framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: stream, EndStream: choice&1 == 1, EndHeaders: len(first) == len(block), BlockFragment: first,
	})
	for rest := block[len(first):]; len(rest) > 0; {
		part := rest[:min(size, len(rest))]
		rest = rest[len(part):]
		_ = f.framer.WriteContinuation(stream, len(rest) == 0, part)
	}
}

// act has the far end do one thing.
func (f *peer) act(s *script, lists [][]string) {
	if s.byte()%8 == 0 {
		f.hand(s.bytes(int(s.byte())))
		return
	}
	f.write(s, lists)
	f.flush()
}
