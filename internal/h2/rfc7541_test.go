package h2

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"golang.org/x/net/http2/hpack"

	"github.com/cabrank/cabrank/internal/testkit"
)

// RFC 7541, RFC 9113 4.3: a block that cannot be decoded ends the connection,
// whoever sent it and wherever it stands; which ones those are is in
// TestTranscodeCompressionErrors.
func TestRFC7541_Connection(t *testing.T) {
	head := func(stream uint32, block string) *wireBytes {
		return wire().frame(frameHeaders, flagEndHeaders|flagEndStream, stream, block)
	}
	var rulings []ruling
	for _, tt := range []struct{ name, block, want string }{
		{"index 0 (6.1)", "\x80", "hpack_bad_index"},
		{"index beyond the tables (2.3.3)", "\xbe", "hpack_bad_index"},
		{"name index beyond the tables", "\x7e\x01a", "hpack_bad_index"},
		{"integer too large (5.1)", "\xff\xff\xff\xff\xff\x0f", "hpack_int_overflow"},
		{"integer of needless octets (5.1)", "\xff\x80\x80\x80\x80\x00", "hpack_int_overflow"},
		{"string beyond the block", "\x40\x01a\x05b", "hpack_truncated"},
		{"EOS in a string (5.2)", "\x40\x01a\x84\xff\xff\xff\xff", "hpack_bad_huffman"},
		{"padding of more than 7 bits (5.2)", "\x40\x01a\x82\x1f\xff", "hpack_bad_huffman"},
		{"padding that is not EOS (5.2)", "\x40\x01a\x81\x18", "hpack_bad_huffman"},
		{"size update above our setting (6.3)", "\x3f\xe2\x1f", "hpack_table_size"},
		{"size update behind a field (4.2)", "\x88\x20", "hpack_late_update"},
	} {
		want := "COMPRESSION_ERROR: " + tt.want
		rulings = append(rulings,
			ruling{"request: " + tt.name, serverIdle, head(1, tt.block), want},
			ruling{"answer: " + tt.name, clientOpen, head(1, tt.block), want},
			ruling{"trailers: " + tt.name, clientAnswering, head(1, tt.block), want},
			ruling{"answer to a stream that was reset: " + tt.name, clientReset, head(1, tt.block), want},
			ruling{"in pieces: " + tt.name, clientOpen,
				wire().frame(frameHeaders, 0, 1, "").frame(frameContinuation, 0, 1, tt.block[:1]).
					frame(frameContinuation, flagEndHeaders, 1, tt.block[1:]), want},
		)
	}
	rule(t, rulings)
}

// RFC 9113 4.3: the decoder takes in every block, also of streams that nobody
// wants: refused, malformed, too large, gone. Each leaves an entry that the next
// good block refers to.
func TestRFC9113_4_3_StateOfUnwantedBlocks(t *testing.T) {
	entry := string(literal("kept", "yes"))
	for name, bad := range map[string]func(r *rig) string{
		"refused by the limit": func(*rig) string { return string(statelessRequest) },
		"malformed":            func(*rig) string { return "\x82" },
		"below our GOAWAY": func(r *rig) string {
			r.conn.GoAway(1, NoError, "")
			return string(statelessRequest)
		},
		"refused by the handler": func(r *rig) string {
			r.refuse = true
			return string(statelessRequest)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newServer(t, func(c *Config) {
				if name == "refused by the limit" {
					c.MaxStreams = 1
				}
			})
			r.settle(wire().frame(frameHeaders, flagEndHeaders, 1, string(statelessRequest)))
			r.feed(wire().frame(frameHeaders, flagEndHeaders|flagEndStream, 3, bad(r)+entry))
			r.wantLog()
			r.frames()
			r.feed(wire().frame(frameHeaders, flagEndHeaders|flagEndStream, 1, "\xbe"))
			r.wantLog("headers 1 kept=yes END")
		})
	}

	r := newServer(t, func(c *Config) { c.MaxHeaderList = 200 })
	r.feed(wire().frame(frameHeaders, flagEndHeaders, 1, string(statelessRequest)+"\x00"+string(hpackString("a"))+string(hpackString(strings.Repeat("b", 100)))+entry))
	r.wantLog("too large 1")
	r.feed(wire().frame(frameHeaders, flagEndHeaders|flagEndStream, 1, "\xbe"))
	r.wantLog("headers 1 kept=yes END")
}

// RFC 7541 4.2, R12: a worker whose table shrinks has nothing to be told, since
// our blocks never use one: the first begins with a size update to 0.
func TestRFC7541_4_2_OurTableIsEmpty(t *testing.T) {
	r := newClient(t)
	r.settle(wire().settings(setting(1, 0)))
	for range 3 {
		r.open(true)
	}
	r.wantFrames("HEADERS 1 :path=/s/m END", "HEADERS 3 :path=/s/m END", "HEADERS 5 :path=/s/m END")
	r.settle(wire().settings(setting(1, 65536)))
	r.open(true)
	block := r.conn.Output()[frameHeaderLen:]
	testkit.Want(t, string(block) == string(statelessRequest), "the block %x begins with something else", block)
}

func BenchmarkHuffman(b *testing.B) {
	for _, text := range []string{"4999000u", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", strings.Repeat("~{\x80\xff", 10)} {
		coded := hpack.AppendHuffmanString(nil, text)
		var plain []byte
		b.Run("ours", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				plain, _ = huffman.appendDecoded(plain[:0], coded)
			}
		})
		b.Run("hpack", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				hpack.HuffmanDecode(io.Discard, coded)
			}
		})
	}
}

func FuzzHuffman(f *testing.F) {
	f.Add([]byte(nil))
	f.Add([]byte("www.example.com"))
	for s := range 256 {
		f.Add([]byte{byte(s)})
		f.Add(hpack.AppendHuffmanString(nil, string([]byte{byte(s), 'a', byte(s)})))
	}
	f.Add([]byte{0xff})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{0xff, 0xff, 0xff, 0xfc})
	f.Add([]byte{0x1f, 0xff})
	f.Fuzz(func(t *testing.T, in []byte) {
		want, err := hpack.HuffmanDecodeToString(in)
		got, failed := huffman.appendDecoded(nil, in)
		if (err != nil) != (failed != 0) || err == nil && string(got) != want {
			t.Errorf("decoding %x: %q, %v; hpack: %q, %v", in, got, failed, want, err)
		}
		coded := hpack.AppendHuffmanString(nil, string(in))
		if got, failed := huffman.appendDecoded(nil, coded); failed != 0 || !bytes.Equal(got, in) {
			t.Errorf("decoding %x: %q, %v; want %q", coded, got, failed, in)
		}
	})
}
