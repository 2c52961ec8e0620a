//go:build real || soak

package real_test

import (
	"bytes"
	"slices"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/cabrank/cabrank/internal/demo/demopb"
)

// arms is what one attacking connection writes with.
type arms struct {
	*http2.Framer

	out   bytes.Buffer
	enc   *hpack.Encoder
	block bytes.Buffer
	next  uint32 // stream
	kept  []byte // a block that means the same again
}

func newArms() *arms {
	a := &arms{next: 1}
	a.Framer = http2.NewFramer(&a.out, nil)
	a.AllowIllegalWrites = true
	a.enc = hpack.NewEncoder(&a.block)
	a.out.WriteString(http2.ClientPreface)
	a.do(a.WriteSettings())
	a.do(a.WriteSettingsAck())
	return a
}

// do drops what cannot fail: all of it is written to memory.
func (a *arms) do(error) {}

// call begins a stream and returns its number.
func (a *arms) call(end bool, more ...string) uint32 {
	id := a.next
	a.next += 2
	a.headers(id, end, asked(more...)...)
	return id
}

// asked is the header list of a call.
func asked(more ...string) []string {
	return append([]string{
		":method", "POST", ":scheme", "http", ":path", demopb.Greeter_SayHello_FullMethodName, ":authority", "attack",
		"content-type", "application/grpc", "te", "trailers",
	}, more...)
}

// ask makes a whole call, whose answer has DATA.
func (a *arms) ask() { a.do(a.WriteData(a.call(false), true, make([]byte, 5))) }

// watch asks for the health of everything, which stays open and has no worker
// do anything: what is measured is the stream, not its place in the queue.
func (a *arms) watch() {
	id := a.next
	a.next += 2
	list := asked()
	list[5] = healthpb.Health_Watch_FullMethodName
	a.headers(id, false, list...)
	a.do(a.WriteData(id, true, make([]byte, 5)))
}

// encode makes a header block of names and values that alternate.
func (a *arms) encode(kv ...string) []byte {
	a.block.Reset()
	for pair := range slices.Chunk(kv, 2) {
		a.do(a.enc.WriteField(hpack.HeaderField{Name: pair[0], Value: pair[1]}))
	}
	return bytes.Clone(a.block.Bytes())
}

func (a *arms) headers(id uint32, end bool, kv ...string) {
	a.encode(kv...)
	first := a.block.Next(16 << 10)
	a.do(a.WriteHeaders(http2.HeadersFrameParam{StreamID: id, EndStream: end, EndHeaders: a.block.Len() == 0, BlockFragment: first}))
	for a.block.Len() > 0 {
		part := a.block.Next(16 << 10)
		a.do(a.WriteContinuation(id, a.block.Len() == 0, part))
	}
}

// noWindow keeps every answer from being sent.
func (a *arms) noWindow() {
	a.do(a.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}))
}
