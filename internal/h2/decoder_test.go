package h2

import (
	"bytes"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/http2/hpack"

	"github.com/cabrank/cabrank/internal/testkit"
)

// unhex reads hexadecimal digits; spaces between them are for the reader.
func unhex(t testing.TB, digits string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(digits, " ", ""))
	testkit.Must(t, err)
	return b
}

// list writes fields as "name: value" for comparing.
func list(fields []hpack.HeaderField) []string {
	lines := make([]string, len(fields))
	for i, f := range fields {
		lines[i] = f.Name + ": " + f.Value
		if f.Sensitive {
			lines[i] += " (never indexed)"
		}
	}
	return lines
}

// readStateless decodes a block with a decoder that has no dynamic table.
func readStateless(t testing.TB, enc []byte) []hpack.HeaderField {
	t.Helper()
	fields, err := hpack.NewDecoder(0, nil).DecodeFull(enc)
	testkit.Need(t, err == nil, "the output %x is not stateless: %v", enc, err)
	return fields
}

// A step is one block of a connection, from the examples of RFC 7541,
// appendix C: what comes in, its fields, and the table behind it.
type step struct {
	in        string
	fields    []string
	tableSize uint32
	entries   []string // as "name: value", the newest first
}

var specExamples = []struct {
	name      string
	kind      Kind
	tableSize uint32
	steps     []step
}{
	{"C.3 requests without Huffman", RequestBlock, 4096, []step{
		{"8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d", specRequest1, 57,
			[]string{":authority: www.example.com"}},
		{"8286 84be 5808 6e6f 2d63 6163 6865", specRequest2, 110,
			[]string{"cache-control: no-cache", ":authority: www.example.com"}},
		{"8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65", specRequest3, 164,
			[]string{"custom-key: custom-value", "cache-control: no-cache", ":authority: www.example.com"}},
	}},
	{"C.4 requests with Huffman", RequestBlock, 4096, []step{
		{"8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff", specRequest1, 57,
			[]string{":authority: www.example.com"}},
		{"8286 84be 5886 a8eb 1064 9cbf", specRequest2, 110,
			[]string{"cache-control: no-cache", ":authority: www.example.com"}},
		{"8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf", specRequest3, 164,
			[]string{"custom-key: custom-value", "cache-control: no-cache", ":authority: www.example.com"}},
	}},
	{"C.5 responses without Huffman", ResponseBlock, 256, []step{
		{"4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 " +
			"2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
			specResponse1, 222, specTable1},
		{"4803 3330 37c1 c0bf", specResponse2, 222, specTable2},
		{"88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 " +
			"7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 " +
			"6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31",
			specResponse3, 215, specTable3},
	}},
	{"C.6 responses with Huffman", ResponseBlock, 256, []step{
		{"4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad " +
			"1718 63c7 8f0b 97c8 e9ae 82ae 43d3", specResponse1, 222, specTable1},
		{"4883 640e ffc1 c0bf", specResponse2, 222, specTable2},
		{"88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 " +
			"e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
			specResponse3, 215, specTable3},
	}},
}

var (
	specRequest1 = []string{":method: GET", ":scheme: http", ":path: /", ":authority: www.example.com"}
	specRequest2 = []string{":method: GET", ":scheme: http", ":path: /", ":authority: www.example.com", "cache-control: no-cache"}
	specRequest3 = []string{":method: GET", ":scheme: https", ":path: /index.html", ":authority: www.example.com", "custom-key: custom-value"}

	specResponse1 = []string{":status: 302", "cache-control: private", "date: Mon, 21 Oct 2013 20:13:21 GMT", "location: https://www.example.com"}
	specResponse2 = []string{":status: 307", "cache-control: private", "date: Mon, 21 Oct 2013 20:13:21 GMT", "location: https://www.example.com"}
	specResponse3 = []string{":status: 200", "cache-control: private", "date: Mon, 21 Oct 2013 20:13:22 GMT", "location: https://www.example.com",
		"content-encoding: gzip", "set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1"}

	specTable1 = []string{"location: https://www.example.com", "date: Mon, 21 Oct 2013 20:13:21 GMT", "cache-control: private", ":status: 302"}
	specTable2 = []string{":status: 307", "location: https://www.example.com", "date: Mon, 21 Oct 2013 20:13:21 GMT", "cache-control: private"}
	specTable3 = []string{"set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1", "content-encoding: gzip", "date: Mon, 21 Oct 2013 20:13:22 GMT"}
)

func TestTranscodeSpecExamples(t *testing.T) {
	for _, example := range specExamples {
		t.Run(example.name, func(t *testing.T) {
			d, b := newDecoder(testWatch(), example.tableSize, 16<<10), new(Block)
			for i, s := range example.steps {
				err := d.Transcode(b, unhex(t, s.in), example.kind)
				testkit.Need(t, err == nil, "block %d: %v", i+1, err)
				if got := list(readStateless(t, b.Enc)); !slices.Equal(got, s.fields) {
					t.Errorf("block %d is\n%q; want\n%q", i+1, got, s.fields)
				}
				testkit.Want(t, b.Fields == len(s.fields), "block %d: %d fields counted, want %d", i+1, b.Fields, len(s.fields))
				testkit.Want(t, d.table.size == s.tableSize, "block %d leaves a table of %d, want %d", i+1, d.table.size, s.tableSize)
				if got := tableList(t, &d.table); !slices.Equal(got, s.entries) {
					t.Errorf("block %d leaves the table\n%q; want\n%q", i+1, got, s.entries)
				}
			}
		})
	}
}

// tableList reads the entries of a dynamic table, the newest first.
func tableList(t testing.TB, table *dynamicTable) []string {
	t.Helper()
	var lines []string
	for i := range table.count {
		lines = append(lines, list(readStateless(t, table.formOf(table.at(i))))...)
	}
	return lines
}

// R12: the exact octets of the stateless form.
func TestTranscodeExactBytes(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"static fields stay indices", "83 86 84", "83 86 84"},
		{"C.2.1 with indexing becomes without", "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
			"000a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572"},
		{"C.2.2 without indexing", "040c 2f73 616d 706c 652f 7061 7468", "040c 2f73 616d 706c 652f 7061 7468"},
		{"C.2.3 never indexed stays", "1008 7061 7373 776f 7264 0673 6563 7265 74", "1008 7061 7373 776f 7264 0673 6563 7265 74"},
		{"never indexed with a static name", "1f08 0173", "1f08 0173"},
		{"a static name of two octets", "7a01 61", "0f2b 0161"},
		{"a spelled name becomes a static one", "000a 7573 6572 2d61 6765 6e74 0161", "0f2b 0161"},
		{"a spelled name in Huffman code does too", "0087 b505 b161 cc5a 93 0161", "0f2b 0161"},
		{"Huffman strings are copied", "4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf", "0088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf"},
		{"a watched value is spelled out", "5f 8b 1d75 d062 0d26 3d4c 4d65 64", "0f10 10 6170 706c 6963 6174 696f 6e2f 6772 7063"},
		{"a Huffman string longer than its text is spelled out", "0001 6182 ffef", "0001 6101 7e"},
		{"an indexed entry becomes its literal", "4001 6101 62be", "0001 6101 62 0001 6101 62"},
		{"an indexed name becomes its literal", "4001 6101 627e 0163", "0001 6101 62 0001 6101 63"},
		{"a never indexed field with an indexed name", "4001 6101 621f 2f01 63", "0001 6101 62 1001 6101 63"},
		{"an empty value", "4001 6100", "0001 6100"},
		{"cookie crumbs stay apart and in order", "6001 6160 0162 6001 63", "0f11 0161 0f11 0162 0f11 0163"},
		{"a size update is not put out", "20 83", "83"},
		{"lengths in needless octets are put right", "4001 617f 8000" + strings.Repeat("62", 127), "0001 617f 00" + strings.Repeat("62", 127)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, b := newDecoder(testWatch(), 4096, 16<<10), new(Block)
			err := d.Transcode(b, unhex(t, tt.in), RequestBlock)
			_, malformed := errors.AsType[MalformedError](err)
			testkit.Need(t, err == nil || malformed, "%v", err)
			if want := unhex(t, tt.want); !bytes.Equal(b.Enc, want) {
				t.Errorf("%s became %x; want %x", tt.in, b.Enc, want)
			}
		})
	}
}

// RFC 7541: what cannot be decoded ends the connection, each with its reason.
func TestTranscodeCompressionErrors(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     CompressionError
	}{
		{"index 0 (6.1)", "80", CompressionBadIndex},
		{"index beyond an empty table", "be", CompressionBadIndex},
		{"index beyond the newest entry", "4001 6101 62bf", CompressionBadIndex},
		{"name index beyond the table", "7e 0161", CompressionBadIndex},
		{"name index without indexing", "0f2f 0161", CompressionBadIndex},
		{"integer without end", "ff", CompressionTruncated},
		{"integer cut off", "ff80 80", CompressionTruncated},
		{"integer of five octets (5.1)", "ff80 8080 8000", CompressionIntOverflow},
		{"integer beyond 32 bits", "ffff ffff ffff 0f", CompressionIntOverflow},
		{"length of five octets", "0001 617f ffff ffff 7f", CompressionIntOverflow},
		{"name index cut off", "7f", CompressionTruncated},
		{"no name", "40", CompressionTruncated},
		{"name cut off", "4005 6162", CompressionTruncated},
		{"no value", "4001 61", CompressionTruncated},
		{"value cut off", "4001 6102 62", CompressionTruncated},
		{"static name without value", "41", CompressionTruncated},
		{"EOS in a string (5.2)", "4001 6185 ffff ffff ff", CompressionBadHuffman},
		{"EOS alone", "4001 6184 ffff fffc", CompressionBadHuffman},
		{"padding of 8 bits", "4001 6182 1fff", CompressionBadHuffman},
		{"padding with a zero", "4001 6181 18", CompressionBadHuffman},
		{"Huffman name in disorder", "4081 0001 62", CompressionBadHuffman},
		{"size update above the limit (6.3)", "3fe2 1f", CompressionTableSize},
		{"size update at the limit", "3fe1 1f", 0},
		{"two size updates in front (4.2)", "20 3fe1 1f", 0},
		{"size update behind a field (4.2)", "83 20", CompressionLateUpdate},
		{"size update cut off", "3f", CompressionTruncated},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, b := newDecoder(testWatch(), 4096, 16<<10), new(Block)
			err := d.Transcode(b, unhex(t, tt.in), RequestBlock)
			got, _ := errors.AsType[CompressionError](err)
			testkit.Want(t, got == tt.want, "%s: %v; want %v", tt.in, err, tt.want)
		})
	}
}

// An insertion with an indexed name may evict the entry that has the name
// (RFC 7541, 4.4).
func TestTranscodeNameOfEvictedEntry(t *testing.T) {
	d, b := newDecoder(testWatch(), 40, 16<<10), new(Block)
	testkit.Must(t, d.Transcode(b, unhex(t, "4003 6162 6301 31 7e 0132 be"), TrailerBlock))
	want := []string{"abc: 1", "abc: 2", "abc: 2"}
	got := list(readStateless(t, b.Enc))
	testkit.Want(t, slices.Equal(got, want), "got %q; want %q", got, want)
}

// Every second block here is refused, and each leaves entries that the next
// honest block refers to: the decoder must have taken them in (R12).
func TestTranscodeStateAfterRefusal(t *testing.T) {
	var buf bytes.Buffer
	enc := hpack.NewEncoder(&buf)
	encode := func(fields ...hpack.HeaderField) []byte {
		buf.Reset()
		for _, f := range fields {
			testkit.Must(t, enc.WriteField(f))
		}
		return buf.Bytes()
	}
	d, b := newDecoder(testWatch(), 4096, 1000), new(Block)
	for i, bad := range [][]hpack.HeaderField{
		{{Name: "Upper", Value: "x"}, {Name: "later", Value: "1"}},
		{{Name: "x", Value: "a\nb"}, {Name: "later", Value: "2"}},
		{{Name: "big", Value: strings.Repeat("b", 1200)}, {Name: "later", Value: "3"}},
		{{Name: ":path", Value: ""}, {Name: ":path", Value: ""}, {Name: "later", Value: "4"}},
	} {
		testkit.Want(t, d.Transcode(b, encode(bad...), RequestBlock) != nil, "block %d was not refused", i)
		good := append(grpcRequest(""), bad[len(bad)-1])
		err := d.Transcode(b, encode(good...), RequestBlock)
		testkit.Want(t, err == nil, "block behind %d: %v", i, err)
		testkit.EqualList(t, list(readStateless(t, b.Enc)), list(good), "block behind %d", i)
	}
}

// A refused field stays refused when it comes back as an index.
func TestTranscodeIndexedFaultIsRemembered(t *testing.T) {
	d, b := newDecoder(testWatch(), 4096, 16<<10), new(Block)
	for _, in := range []string{"83 86 84 4001 4101 62", "83 86 84 be", "83 86 84 7e 0163", "83 86 84 0f2f 0164"} {
		testkit.Is(t, d.Transcode(b, unhex(t, in), RequestBlock), MalformedNameUppercase, "%s", in)
	}
}

// RFC 9113, 6.5.2: the limit counts what a receiver would hold, and the state
// is kept in step though nothing more is put out.
func TestTranscodeListTooLarge(t *testing.T) {
	size := func(fields []hpack.HeaderField) (n int) {
		for _, f := range fields {
			n += int(f.Size())
		}
		return n
	}
	fields := append(grpcRequest(""), hpack.HeaderField{Name: "big", Value: strings.Repeat("b", 500)})
	blocks := encoderBlocks(fields, fields)
	limit := size(fields)
	d, b := newDecoder(testWatch(), 4096, limit), new(Block)
	for i, block := range blocks {
		err := d.Transcode(b, block, RequestBlock)
		testkit.Want(t, err == nil && b.ListSize == limit, "block %d of %d octets at a limit of %d: %v", i, b.ListSize, limit, err)
	}
	d = newDecoder(testWatch(), 4096, limit-1)
	for i, block := range blocks {
		testkit.Is(t, d.Transcode(b, block, RequestBlock), ErrListTooLarge,
			"block %d of %d octets at a limit of %d", i, b.ListSize, limit-1)
		testkit.EqualList(t, list(readStateless(t, b.Enc)), list(grpcRequest("")), "block %d was put out as", i)
		w, ok := b.Watched(watchContentType)
		testkit.Want(t, ok && string(w.Value) == "application/grpc", "block %d: content-type %q", i, w.Value)
	}
}

// Two octets of input may copy a long name out of the table, over and over.
func TestTranscodeBoundsNameCopies(t *testing.T) {
	name := strings.Repeat("n", 4000)
	in := append([]byte{0x40}, hpackString(name)...)
	in = append(in, 0)
	for range 100 {
		in = append(in, 0x7e, 0)
	}
	d, b := newDecoder(testWatch(), 4096, 1000), new(Block)
	err := d.Transcode(b, in, RequestBlock)
	testkit.Want(t, errors.Is(err, CompressionBomb), "got %v", err)
	testkit.Want(t, len(b.Enc) <= 1000+len(name)+fieldOverhead, "the output grew to %d", len(b.Enc))
}

func hpackString(s string) []byte {
	return append(appendInt(nil, 0, 7, uint32(len(s))), s...)
}

func TestTranscodeAllocatesNothing(t *testing.T) {
	var timed [][]hpack.HeaderField
	for i := range 300 {
		timed = append(timed, grpcRequest(string(rune('1'+i%9))+"00"+string(rune('0'+i%7))+"m"))
	}
	d, b := newDecoder(testWatch(), 4096, 16<<10), new(Block)
	blocks := encoderBlocks(timed...)
	for _, block := range blocks[:150] { // until table and block have grown
		testkit.Must(t, d.Transcode(b, block, RequestBlock))
	}
	i := 150
	allocs := testing.AllocsPerRun(100, func() {
		testkit.Must(t, d.Transcode(b, blocks[i], RequestBlock))
		for id := range 3 {
			w, ok := b.Watched(id)
			testkit.Need(t, ok && len(w.Value) != 0, "watched field is missing")
		}
		i++
	})
	testkit.Want(t, allocs == 0, "%v allocations", allocs)
}

// bombFuse puts one field of 4,000 octets into the table; each octet behind it
// refers to that field.
func bombFuse() []byte {
	fuse := append([]byte{0x40, 1, 'b'}, hpackString(strings.Repeat("b", 4000))...)
	return fuse
}

// HPACK bomb: one octet of input is a whole entry of output. It goes off before
// it has made more of a block than an honest one may be, within the list limit
// and beyond it, in one block and in many.
func TestTranscodeBoundsReferences(t *testing.T) {
	for name, limit := range map[string]int{"within the limit": 1 << 20, "beyond it": 1000} {
		t.Run(name, func(t *testing.T) {
			d, b := newDecoder(testWatch(), 4096, limit), new(Block)
			err := d.Transcode(b, bombFuse(), TrailerBlock)
			testkit.Need(t, limit <= 4096 || err == nil, "%v", err)
			block := make([]byte, 0, 1000)
			for len(block) < 4 { // as much as the table, four times
				block = append(block, 0xbe)
			}
			if err := d.Transcode(b, block, TrailerBlock); limit > 1<<16 && err != nil {
				t.Errorf("a block of %d references: %v", len(block), err)
			}
			for range 100 {
				block = append(block, 0xbe)
			}
			testkit.Is(t, d.Transcode(b, block, TrailerBlock), CompressionBomb, "a block of %d references", len(block))
			testkit.Want(t, len(b.Enc) <= (maxCopies+copyRate*len(block)), "%d octets of input made %d of output", len(block), len(b.Enc))
		})
	}
}

// A long list of small fields that are all in the table is honest.
func TestTranscodeTakesManySmallReferences(t *testing.T) {
	d, b := newDecoder(testWatch(), 4096, 1<<20), new(Block)
	testkit.Must(t, d.Transcode(b, []byte{0x40, 1, 'a', 3, 'b', 'c', 'd'}, TrailerBlock))
	block := []byte(strings.Repeat("\xbe", 20_000))
	testkit.Must(t, d.Transcode(b, block, TrailerBlock))
	testkit.Want(t, b.Fields == len(block), "%d fields", b.Fields)
}

// RFC 7541, 4.2: a block begins with at most two updates of the table's size.
func TestTranscodeBoundsSizeUpdates(t *testing.T) {
	two, three := "203fe11f 82", "20203fe11f 82"
	d, b := newDecoder(testWatch(), 4096, 1000), new(Block)
	for range 3 {
		err := d.Transcode(b, unhex(t, two), RequestBlock)
		testkit.Need(t, !errors.Is(err, CompressionUpdates), "two updates: %v", err)
	}
	testkit.Is(t, d.Transcode(b, unhex(t, three), RequestBlock), CompressionUpdates, "three updates")
}

// Table-size games between blocks: a table that is emptied and filled again for
// every block stays within its bounds.
func TestTableSizeGames(t *testing.T) {
	d, b := newDecoder(testWatch(), 4096, 16<<10), new(Block)
	for i := range 1000 {
		block := []byte{0x20, 0x3f, 0xe1, 0x1f}
		if i%3 == 0 {
			block = []byte{0x3f, byte(1 + i%100)}
		}
		block = append(block, 0x40, 1, byte('a'+i%26))
		block = append(block, hpackString(strings.Repeat("v", i%4000))...)
		err := d.Transcode(b, block, TrailerBlock)
		testkit.Need(t, err == nil, "block %d: %v", i, err)
		checkBounds(t, &d.table, 4096)
	}
}
