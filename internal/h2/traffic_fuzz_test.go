package h2

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"golang.org/x/net/http2/hpack"
)

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
