package h2

import (
	"testing"

	"golang.org/x/net/http2/hpack"
)

func TestStaticTableIsThatOfHpack(t *testing.T) {
	for i := 1; i < int(firstDynamic); i++ {
		fields, err := hpack.NewDecoder(0, nil).DecodeFull([]byte{0x80 | byte(i)})
		if err != nil {
			t.Fatal(err)
		}
		if want := (staticEntry{fields[0].Name, fields[0].Value}); staticTable[i] != want {
			t.Errorf("row %d is %q; hpack has %q", i, staticTable[i], want)
		}
	}
}
