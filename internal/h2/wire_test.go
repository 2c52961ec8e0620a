package h2

import (
	"bytes"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// wireBytes puts together what a peer sends. Every wire has a header encoder of
// its own without a dynamic table, so that wires can be mixed.
type wireBytes struct {
	b      bytes.Buffer
	framer *http2.Framer
	enc    *hpack.Encoder
	block  bytes.Buffer
}

func wire() *wireBytes {
	w := &wireBytes{}
	w.framer = http2.NewFramer(&w.b, nil)
	w.framer.AllowIllegalWrites = true
	w.enc = hpack.NewEncoder(&w.block)
	w.enc.SetMaxDynamicTableSize(0)
	w.block.Reset()
	return w
}

func (w *wireBytes) must(err error) *wireBytes {
	if err != nil {
		panic(err)
	}
	return w
}

func (w *wireBytes) preface() *wireBytes { return w.raw([]byte(Preface)) }

func (w *wireBytes) raw(p []byte) *wireBytes {
	w.b.Write(p)
	return w
}

func (w *wireBytes) settings(s ...http2.Setting) *wireBytes {
	return w.must(w.framer.WriteSettings(s...))
}

func (w *wireBytes) settingsAck() *wireBytes { return w.frame(frameSettings, flagAck, 0, "") }

func (w *wireBytes) frame(kind frameType, flags uint8, stream uint32, payload string) *wireBytes {
	return w.must(w.framer.WriteRawFrame(http2.FrameType(kind), http2.Flags(flags), stream, []byte(payload)))
}

// encode makes a header block of names and values that alternate.
func (w *wireBytes) encode(kv ...string) []byte {
	w.block.Reset()
	for i := 0; i < len(kv); i += 2 {
		w.enc.WriteField(hpack.HeaderField{Name: kv[i], Value: kv[i+1]})
	}
	return bytes.Clone(w.block.Bytes())
}

func (w *wireBytes) headers(stream uint32, end bool, kv ...string) *wireBytes {
	return w.must(w.framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: stream, EndStream: end, EndHeaders: true, BlockFragment: w.encode(kv...),
	}))
}

// request is the HEADERS of a call.
func (w *wireBytes) request(stream uint32, end bool, kv ...string) *wireBytes {
	head := []string{":method", "POST", ":scheme", "http", ":path", "/s/m", ":authority", "a"}
	return w.headers(stream, end, append(head, kv...)...)
}

func (w *wireBytes) answer(stream uint32, end bool, kv ...string) *wireBytes {
	return w.headers(stream, end, append([]string{":status", "200"}, kv...)...)
}

// fragments sends a block in pieces of the given size.
func (w *wireBytes) fragments(stream uint32, end bool, size int, kv ...string) *wireBytes {
	block := w.encode(kv...)
	kind, flags := frameHeaders, uint8(0)
	if end {
		flags = flagEndStream
	}
	for len(block) > 0 {
		n := min(size, len(block))
		if n == len(block) {
			flags |= flagEndHeaders
		}
		w.frame(kind, flags, stream, string(block[:n]))
		block, kind, flags = block[n:], frameContinuation, 0
	}
	return w
}

func (w *wireBytes) data(stream uint32, end bool, p string) *wireBytes {
	return w.must(w.framer.WriteData(stream, end, []byte(p)))
}

func (w *wireBytes) padded(stream uint32, end bool, p string, pad int) *wireBytes {
	return w.must(w.framer.WriteDataPadded(stream, end, []byte(p), make([]byte, pad)))
}

func (w *wireBytes) rst(stream uint32, code ErrCode) *wireBytes {
	return w.must(w.framer.WriteRSTStream(stream, http2.ErrCode(code)))
}

func (w *wireBytes) window(stream, n uint32) *wireBytes {
	return w.must(w.framer.WriteWindowUpdate(stream, n))
}

func (w *wireBytes) ping(ack bool, data string) *wireBytes {
	return w.must(w.framer.WritePing(ack, [8]byte([]byte(data))))
}

func (w *wireBytes) goAway(last uint32, code ErrCode) *wireBytes {
	return w.must(w.framer.WriteGoAway(last, http2.ErrCode(code), nil))
}
