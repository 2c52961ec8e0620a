package h2

import (
	"bytes"
	"strconv"
	"testing"

	"golang.org/x/net/http2/hpack"
)

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
		if err := d.Transcode(out, blocks[i], kind); err != nil {
			b.Fatal(err)
		}
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
