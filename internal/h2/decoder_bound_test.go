package h2

import (
	"errors"
	"strings"
	"testing"
)

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
			if err := d.Transcode(b, bombFuse(), TrailerBlock); limit > 4096 && err != nil {
				t.Fatal(err)
			}
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
			if err := d.Transcode(b, block, TrailerBlock); !errors.Is(err, CompressionBomb) {
				t.Errorf("a block of %d references: %v", len(block), err)
			}
			if most := maxCopies + copyRate*len(block); len(b.Enc) > most {
				t.Errorf("%d octets of input made %d of output", len(block), len(b.Enc))
			}
		})
	}
}

// A long list of small fields that are all in the table is honest.
func TestTranscodeTakesManySmallReferences(t *testing.T) {
	d, b := newDecoder(testWatch(), 4096, 1<<20), new(Block)
	if err := d.Transcode(b, []byte{0x40, 1, 'a', 3, 'b', 'c', 'd'}, TrailerBlock); err != nil {
		t.Fatal(err)
	}
	block := []byte(strings.Repeat("\xbe", 20_000))
	if err := d.Transcode(b, block, TrailerBlock); err != nil {
		t.Error(err)
	}
	if b.Fields != len(block) {
		t.Errorf("%d fields", b.Fields)
	}
}

// RFC 7541, 4.2: a block begins with at most two updates of the table's size.
func TestTranscodeBoundsSizeUpdates(t *testing.T) {
	two, three := "203fe11f 82", "20203fe11f 82"
	d, b := newDecoder(testWatch(), 4096, 1000), new(Block)
	for range 3 {
		if err := d.Transcode(b, unhex(t, two), RequestBlock); errors.Is(err, CompressionUpdates) {
			t.Fatalf("two updates: %v", err)
		}
	}
	if err := d.Transcode(b, unhex(t, three), RequestBlock); !errors.Is(err, CompressionUpdates) {
		t.Errorf("three updates: %v", err)
	}
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
		if err := d.Transcode(b, block, TrailerBlock); err != nil {
			t.Fatalf("block %d: %v", i, err)
		}
		checkBounds(t, &d.table, 4096)
	}
}
