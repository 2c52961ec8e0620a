package h2

import (
	"bytes"
	"strconv"
	"testing"

	"golang.org/x/net/http2/hpack"

	"github.com/cabrank/cabrank/internal/testkit"
)

// pair is a caller's engine joined to a worker's by copying bytes. A call is
// opened in the client role and answered by an echo in the server role.
type pair struct {
	budget Budget
	block  Block
	caller *Conn // of a caller's process: client role
	worker *Conn // of a worker's process: server role
	up     Stream
	down   Stream
	done   bool
	body   []byte
	wire   []byte
}

func (p *pair) Dirty(*Conn)                   {}
func (p *pair) Accept(*Conn, *Block) *Stream  { p.down.Clear(); return &p.down }
func (p *pair) GoAway(*Conn, uint32, ErrCode) {}
func (p *pair) Pong(*Conn, [8]byte)           {}
func (p *pair) TooLarge(*Stream, bool)        {}
func (p *pair) Reset(*Stream, ErrCode, bool)  {}
func (p *pair) Lost(*Stream, bool)            {}
func (p *pair) Writable(*Stream)              {}

// Headers answers in the worker's role, and ends the call in the caller's.
func (p *pair) Headers(s *Stream, _ *Block, end bool) {
	if s == &p.up {
		p.done = p.done || end
	} else {
		p.worker.WriteHeaders(s, false, statelessAnswer)
	}
}

// Data echoes in the worker's role.
func (p *pair) Data(s *Stream, b []byte, end bool) {
	s.Conn().Credit(s, len(b))
	if s == &p.up {
		return
	}
	p.worker.WriteData(s, b, false)
	if end {
		p.worker.WriteHeaders(s, true, statelessTrailers)
	}
}

func newPair(body int) *pair {
	p := &pair{body: make([]byte, body), budget: Budget{Total: 64 << 20}, wire: make([]byte, 0, 64<<10)}
	pool := NewPool(&p.budget)
	p.caller = NewConn(testConfig(false), p, pool, &p.block, p)
	p.worker = NewConn(testConfig(true), p, pool, &p.block, p)
	p.carry(p.caller, p.worker)
	p.carry(p.worker, p.caller)
	p.carry(p.caller, p.worker)
	return p
}

// carry brings all output of one engine to the other.
func (p *pair) carry(from, to *Conn) {
	for out := from.Output(); len(out) > 0; out = from.Output() {
		p.wire = append(p.wire[:0], out...)
		from.Sent(len(out))
		if err := to.Feed(p.wire, 0); err != nil {
			panic(err)
		}
	}
}

// call makes one unary call.
func (p *pair) call() bool {
	p.up.Clear()
	p.done = false
	if p.caller.nextID >= maxStreamID/2 {
		p.caller.nextID, p.worker.lastPeer = 1, 0 // a long benchmark
	}
	p.caller.Open(&p.up, false, statelessRequest)
	p.caller.WriteData(&p.up, p.body, true)
	p.carry(p.caller, p.worker)
	p.carry(p.worker, p.caller)
	return p.done && !p.up.Open() && !p.down.Open()
}

// BenchmarkUnaryCall is one call through both roles of the engine: opened,
// written, read, answered, read. A relay does this work once for each call.
func BenchmarkUnaryCall(b *testing.B) {
	for _, size := range []struct {
		name  string
		bytes int
	}{{"16B", 16}, {"10KiB", 10 << 10}} {
		b.Run(size.name, func(b *testing.B) {
			p := newPair(size.bytes)
			b.ReportAllocs()
			for b.Loop() {
				testkit.Need(b, p.call(), "the call did not end")
			}
		})
	}
}

// A call allocates nothing in the steady state.
func TestCallAllocatesNothing(t *testing.T) {
	for _, size := range []int{16, 10 << 10} {
		p := newPair(size)
		for range 100 {
			p.call()
		}
		if n := testing.AllocsPerRun(1000, func() {
			testkit.Need(t, p.call(), "the call did not end")
		}); n != 0 {
			t.Errorf("%d bytes: %v allocations for each call", size, n)
		}
		p.caller.Close()
		p.worker.Close()
		testkit.Equal(t, p.budget.Used(), 0, "bytes are in use")
	}
}

// grpcRequest is a request as grpc-go sends it, in its order.
func grpcRequest(timeout string) []hpack.HeaderField {
	fields := []hpack.HeaderField{
		{Name: ":method", Value: "POST"},
		{Name: ":scheme", Value: "http"},
		{Name: ":path", Value: "/helloworld.Greeter/SayHello"},
		{Name: ":authority", Value: "127.0.0.1:50051"},
		{Name: "content-type", Value: "application/grpc"},
		{Name: "user-agent", Value: "grpc-go/1.85.0"},
		{Name: "te", Value: "trailers"},
	}
	if timeout != "" {
		fields = append(fields, hpack.HeaderField{Name: "grpc-timeout", Value: timeout})
	}
	return fields
}

// testWatch is about what a relay looks for.
func testWatch() *WatchList {
	return NewWatchList(":method", ":path", ":scheme", "content-type", "grpc-timeout",
		":status", "grpc-status", "grpc-message", "x-forwarded-for")
}

// wideWatch is as long as a list may be. The names that requests have are at its
// end, and some are not those of testWatch.
func wideWatch() *WatchList {
	tail := []string{
		"user-agent", "te", ":path", "custom-key", "x-bin", "cache-control", "traceparent", "grpc-timeout",
		":authority", ":status", "content-length", "host",
	}
	var names []string
	for i := range maxWatched - len(tail) {
		names = append(names, "x-"+strconv.Itoa(i))
	}
	return NewWatchList(append(names, tail...)...)
}

// The places of the names of testWatch.
const (
	watchMethod = iota
	watchPath
	watchScheme
	watchContentType
	watchTimeout
	watchStatus
	_ // grpc-status
	_ // grpc-message
	watchForwarded
)

// encoderBlocks encodes the lists one after the other with one hpack encoder.
func encoderBlocks(lists ...[]hpack.HeaderField) [][]byte {
	var buf bytes.Buffer
	enc := hpack.NewEncoder(&buf)
	blocks := make([][]byte, len(lists))
	for i, list := range lists {
		buf.Reset()
		for _, f := range list {
			enc.WriteField(f)
		}
		blocks[i] = bytes.Clone(buf.Bytes())
	}
	return blocks
}

// benchmarkTranscode goes round through blocks, behind the first warm ones.
func benchmarkTranscode(b *testing.B, kind Kind, blocks [][]byte, warm int) {
	b.Helper()
	benchmarkWatching(b, testWatch(), kind, blocks, warm)
}

func benchmarkWatching(b *testing.B, watch *WatchList, kind Kind, blocks [][]byte, warm int) {
	b.Helper()
	d, out := newDecoder(watch, 4096, 16<<10), new(Block)
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		testkit.Must(b, d.Transcode(out, blocks[i], kind))
		if i++; i == len(blocks) {
			if i = warm; warm == 0 { // as new, but with its memory
				d.table.resize(0)
				d.table.resize(4096)
			}
		}
	}
}

// The steady state: every field is indexed. At most 120 ns, 0 allocations.
func BenchmarkTranscodeRequest(b *testing.B) {
	blocks := encoderBlocks(grpcRequest(""), grpcRequest(""))
	benchmarkTranscode(b, RequestBlock, blocks, 1)
}

// A deadline makes grpc-timeout another literal on every call.
func BenchmarkTranscodeRequestTimeout(b *testing.B) {
	var lists [][]hpack.HeaderField
	for i := range 300 {
		lists = append(lists, grpcRequest(strconv.Itoa(4_999_000-i)+"u"))
	}
	benchmarkTranscode(b, RequestBlock, encoderBlocks(lists...), 0)
}

// However long the list is, what is not in a block costs nothing.
func BenchmarkTranscodeRequestTimeoutWide(b *testing.B) {
	var lists [][]hpack.HeaderField
	for i := range 300 {
		lists = append(lists, grpcRequest(strconv.Itoa(4_999_000-i)+"u"))
	}
	benchmarkWatching(b, wideWatch(), RequestBlock, encoderBlocks(lists...), 0)
}

// A trace adds a literal of 55 octets on every call.
func BenchmarkTranscodeRequestTrace(b *testing.B) {
	var lists [][]hpack.HeaderField
	for i := range 300 {
		trace := "00-0af7651916cd43dd8448eb211c80319c-" + strconv.FormatUint(0xb7ad6b7169203331+uint64(i)<<24, 16) + "-01"
		lists = append(lists, append(grpcRequest(strconv.Itoa(4_999_000-i)+"u"), hpack.HeaderField{Name: "traceparent", Value: trace}))
	}
	benchmarkTranscode(b, RequestBlock, encoderBlocks(lists...), 0)
}

func BenchmarkTranscodeResponse(b *testing.B) {
	list := []hpack.HeaderField{{Name: ":status", Value: "200"}, {Name: "content-type", Value: "application/grpc"}}
	benchmarkTranscode(b, ResponseBlock, encoderBlocks(list, list), 1)
}

func BenchmarkTranscodeTrailers(b *testing.B) {
	list := []hpack.HeaderField{{Name: "grpc-status", Value: "0"}, {Name: "grpc-message", Value: ""}}
	benchmarkTranscode(b, TrailerBlock, encoderBlocks(list, list), 1)
}

// What decoding and encoding again with hpack would cost.
func BenchmarkHpackRecode(b *testing.B) {
	blocks := encoderBlocks(grpcRequest(""), grpcRequest(""))
	var out bytes.Buffer
	enc := hpack.NewEncoder(&out)
	dec := hpack.NewDecoder(4096, func(f hpack.HeaderField) { enc.WriteField(f) })
	dec.Write(blocks[0])
	b.ReportAllocs()
	for b.Loop() {
		out.Reset()
		dec.Write(blocks[1])
		dec.Close()
	}
}

// hostileBlocks are header blocks that cost the most for each of their octets,
// by what they have the decoder do.
func hostileBlocks() map[string][]byte {
	huffman := hpack.AppendHuffmanString(nil, string(bytes.Repeat([]byte{'"'}, 30<<10)))
	long := append([]byte{0x00, 1, 'a'}, appendInt(nil, 0x80, 7, uint32(len(huffman)))...)
	insert := append([]byte{0x40, 1, 'a'}, 0)
	return map[string][]byte{
		"static fields":  bytes.Repeat([]byte{0x99}, 32<<10),
		"small fields":   append([]byte{0x40, 1, 'a', 1, 'b'}, bytes.Repeat([]byte{0xbe}, 32<<10)...),
		"insertions":     bytes.Repeat(insert, 8<<10),
		"named by index": append(insert, bytes.Repeat([]byte{0x7e, 0}, 16<<10)...),
		"Huffman":        append(long, huffman...),
	}
}

// BenchmarkHostileBlocks shows that no header block costs more than some
// nanoseconds for each of its octets: who wants to keep us busy must send.
func BenchmarkHostileBlocks(b *testing.B) {
	for name, in := range hostileBlocks() {
		b.Run(name, func(b *testing.B) {
			d, block := newDecoder(testWatch(), 4096, 64<<10), new(Block)
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				err := d.Transcode(block, in, TrailerBlock)
				if asConnError(err) != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
