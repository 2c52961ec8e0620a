package harness

import (
	"bytes"
	"slices"
	"strings"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/cabrank/cabrank/internal/demo/demopb"
)

// Arms is what one attacking connection writes with.
type Arms struct {
	*http2.Framer

	Out   bytes.Buffer
	enc   *hpack.Encoder
	block bytes.Buffer
	Next  uint32 // stream
	Kept  []byte // a block that means the same again
}

// NewArms greets.
func NewArms() *Arms {
	a := &Arms{Next: 1}
	a.Framer = http2.NewFramer(&a.Out, nil)
	a.AllowIllegalWrites = true
	a.enc = hpack.NewEncoder(&a.block)
	a.Out.WriteString(http2.ClientPreface)
	a.Do(a.WriteSettings())
	a.Do(a.WriteSettingsAck())
	return a
}

// Do drops what cannot fail: all of it is written to memory.
func (a *Arms) Do(error) {}

// Call begins a stream and returns its number.
func (a *Arms) Call(end bool, more ...string) uint32 {
	id := a.Next
	a.Next += 2
	a.Headers(id, end, Asked(more...)...)
	return id
}

// Asked is the header list of a call.
func Asked(more ...string) []string {
	return append([]string{
		":method", "POST", ":scheme", "http", ":path", demopb.Greeter_SayHello_FullMethodName, ":authority", "attack",
		"content-type", "application/grpc", "te", "trailers",
	}, more...)
}

// Ask makes a whole call, whose answer has DATA.
func (a *Arms) Ask() { a.Do(a.WriteData(a.Call(false), true, make([]byte, 5))) }

// Watch asks for the health of everything, which stays open and has no worker
// do anything: what is measured is the stream, not its place in the queue.
func (a *Arms) Watch() {
	id := a.Next
	a.Next += 2
	list := Asked()
	list[5] = healthpb.Health_Watch_FullMethodName
	a.Headers(id, false, list...)
	a.Do(a.WriteData(id, true, make([]byte, 5)))
}

// Encode makes a header block of names and values that alternate.
func (a *Arms) Encode(kv ...string) []byte {
	a.block.Reset()
	for pair := range slices.Chunk(kv, 2) {
		a.Do(a.enc.WriteField(hpack.HeaderField{Name: pair[0], Value: pair[1]}))
	}
	return bytes.Clone(a.block.Bytes())
}

// Headers opens a stream, or ends one that has been opened.
func (a *Arms) Headers(id uint32, end bool, kv ...string) {
	a.Blocks(id, end, a.Encode(kv...))
}

// Blocks is Headers of a list that is encoded, in as many frames as it takes.
func (a *Arms) Blocks(id uint32, end bool, list []byte) {
	const most = 16 << 10
	first := list[:min(most, len(list))]
	list = list[len(first):]
	a.Do(a.WriteHeaders(http2.HeadersFrameParam{StreamID: id, EndStream: end, EndHeaders: len(list) == 0, BlockFragment: first}))
	for len(list) > 0 {
		part := list[:min(most, len(list))]
		list = list[len(part):]
		a.Do(a.WriteContinuation(id, len(list) == 0, part))
	}
}

// NoWindow keeps every answer from being sent.
func (a *Arms) NoWindow() {
	a.Do(a.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}))
}

// WideCalls makes as many calls as a connection takes, whose HEADERS name an entry of
// the table three times: 16 KiB in memory for some 100 bytes each.
func (a *Arms) WideCalls(end bool) {
	a.Call(true, "b", strings.Repeat("b", 3700))
	a.block.Reset()
	for pair := range slices.Chunk(Asked(), 2) { // no entries of its own
		a.Do(a.enc.WriteField(hpack.HeaderField{Name: pair[0], Value: pair[1], Sensitive: true}))
	}
	wide := append(bytes.Clone(a.block.Bytes()), 0xbe, 0xbe, 0xbe)
	for range 245 {
		a.Do(a.WriteHeaders(http2.HeadersFrameParam{StreamID: a.Next, EndStream: end, EndHeaders: true, BlockFragment: wide}))
		a.Next += 2
	}
}
