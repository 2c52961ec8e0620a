package h2

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/http2/hpack"

	"github.com/cabrank/cabrank/internal/testkit"
)

// literal is a field with indexing, both strings spelled out.
func literal(name, value string) []byte {
	return append(append([]byte{0x40}, hpackString(name)...), hpackString(value)...)
}

// RFC 7541, 4.3: a smaller size evicts, in front of the block's first field.
func TestTableSizeUpdate(t *testing.T) {
	d, b := newDecoder(testWatch(), 4096, 16<<10), new(Block)
	transcode := func(in []byte) error { return d.Transcode(b, in, TrailerBlock) }
	in := append(append(literal("a", "1"), literal("b", "2")...), literal("c", "3")...)
	testkit.Must(t, transcode(in))
	if err := transcode(unhex(t, "3f25 be bf")); err != nil { // to 68: room for two of 34
		t.Fatal(err)
	}
	if got, want := list(readStateless(t, b.Enc)), []string{"c: 3", "b: 2"}; !slices.Equal(got, want) {
		t.Errorf("behind the update: %q; want %q", got, want)
	}
	testkit.Must(t, transcode(literal("d", "4")))
	if got, want := tableList(t, &d.table), []string{"d: 4", "c: 3"}; !slices.Equal(got, want) {
		t.Errorf("the table is %q; want %q", got, want)
	}
	// The lowest and the final size of two changes (RFC 7541, 4.2).
	err := transcode(unhex(t, "20 3fe1 1f"))
	testkit.Want(t, err == nil && d.table.count == 0, "emptied by an update to zero: %v, %d entries are left", err, d.table.count)
	testkit.Is(t, transcode(unhex(t, "be")), CompressionBadIndex, "index of an evicted entry")
}

// RFC 7541, 4.4: an entry larger than the table empties it and is no error.
func TestTableEntryTooLarge(t *testing.T) {
	d, b := newDecoder(testWatch(), 64, 16<<10), new(Block)
	in := append(literal("a", "1"), literal("big", strings.Repeat("x", 30))...)
	testkit.Must(t, d.Transcode(b, in, TrailerBlock))
	testkit.Want(t, d.table.count == 0 && d.table.size == 0 && b.Fields == 2,
		"%d entries of %d octets are left, %d fields came out", d.table.count, d.table.size, b.Fields)
	exact := literal("a", strings.Repeat("x", 31))
	err := d.Transcode(b, exact, TrailerBlock)
	testkit.Want(t, err == nil && d.table.size == 64, "an entry that just fits leaves a table of %d: %v", d.table.size, err)
}

// An announced table larger than 4096 is used only after the peer says so.
func TestTableInitialSize(t *testing.T) {
	d, b := newDecoder(testWatch(), 8192, 16<<10), new(Block)
	testkit.Want(t, d.table.limit == 4096, "a new table holds %d", d.table.limit)
	err := d.Transcode(b, unhex(t, "3fe1 3f"), TrailerBlock)
	testkit.Want(t, err == nil && d.table.limit == 8192, "an update to 8192 leaves %d: %v", d.table.limit, err)
}

// checkBounds holds what dynamicTable promises about its memory.
func checkBounds(t *testing.T, table *dynamicTable, maxSize uint32) {
	t.Helper()
	forms, sizes := 0, uint32(0)
	for i := range table.count {
		e := table.at(i)
		forms += len(table.formOf(e))
		sizes += e.size
		testkit.Need(t, e.form <= e.size, "entry %d of size %d has a form of %d", i, e.size, e.form)
	}
	switch {
	case sizes != table.size || table.size > table.limit || table.limit > maxSize:
		t.Fatalf("size %d of entries with %d, limit %d of %d", table.size, sizes, table.limit, maxSize)
	case cap(table.arena) > max(256, 2*int(maxSize)):
		t.Fatalf("an arena of %d for a table of %d", cap(table.arena), maxSize)
	case len(table.entries) > max(8, 2*int(maxSize)/fieldOverhead):
		t.Fatalf("a ring of %d for a table of %d", len(table.entries), maxSize)
	}
}

func TestTableMemoryIsBounded(t *testing.T) {
	testkit.Equal(t, reflect.TypeFor[entry]().Size(), 24, "octets of an entry")
	d, b := newDecoder(testWatch(), 4096, 16<<10), new(Block)
	testkit.Want(t, d.table.entries == nil && d.table.arena == nil, "a new decoder holds memory")
	for i := range 3000 {
		name := strings.Repeat("n", i%7*i%300)
		testkit.Must(t, d.Transcode(b, literal("a"+name, fmt.Sprint(i)), TrailerBlock))
		checkBounds(t, &d.table, 4096)
	}
	for range 300 { // the smallest entries there are
		testkit.Must(t, d.Transcode(b, literal("a", ""), TrailerBlock))
	}
	checkBounds(t, &d.table, 4096)
	testkit.Want(t, d.table.count == 4096/33, "%d entries", d.table.count)
}

// The decoder of a caller with one kind of call stays small.
func TestTableOfGRPCCallerIsSmall(t *testing.T) {
	d, b := newDecoder(testWatch(), 4096, 16<<10), new(Block)
	for _, block := range encoderBlocks(grpcRequest("5S"), grpcRequest("5S")) {
		testkit.Must(t, d.Transcode(b, block, RequestBlock))
	}
	got := cap(d.table.arena) + int(reflect.TypeFor[entry]().Size())*len(d.table.entries)
	testkit.Want(t, got <= 512, "the table takes %d octets", got)
}

func TestStaticTableIsThatOfHpack(t *testing.T) {
	for i := 1; i < int(firstDynamic); i++ {
		fields, err := hpack.NewDecoder(0, nil).DecodeFull([]byte{0x80 | byte(i)})
		testkit.Must(t, err)
		want := (staticEntry{fields[0].Name, fields[0].Value})
		testkit.Want(t, staticTable[i] == want, "row %d is %q; hpack has %q", i, staticTable[i], want)
	}
}
