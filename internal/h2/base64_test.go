package h2

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"
)

// R12: what a field with the suffix may hold. The last ones of each row are
// what a server on gRPC's C core ends its connection for.
func TestBase64(t *testing.T) {
	for value, good := range map[string]bool{
		"": true, "YQ==": true, "YQ=": true, "YQ": true, "YWI=": true, "YWI": true, "YWJj": true, "+/+/": true, "AAAA": true, "=": true,
		"Y": false, "YR": false, "YWJ": false, "-_8=": false, "Y Q=": false, "YQ==,YQ==": false, "YQ,YQ": false, "\xff": false, "\x01": false,
		"====": false, "YQ==YQ==": false, "=YQ": false, "YWJjY": false,
	} {
		if isBase64([]byte(value)) != good {
			t.Errorf("%q: %t", value, !good)
		}
	}
}

func FuzzBase64(f *testing.F) {
	f.Add([]byte("YWJj"), "YQ")
	f.Fuzz(func(t *testing.T, plain []byte, text string) {
		for _, coding := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding} {
			if value := coding.EncodeToString(plain); !isBase64([]byte(value)) {
				t.Errorf("%q is refused", value)
			}
		}
		trimmed := strings.TrimSuffix(strings.TrimSuffix(text, "="), "=")
		_, err := base64.RawStdEncoding.Strict().DecodeString(trimmed)
		// That decoder takes line breaks, which no field has.
		if want := err == nil && !strings.ContainsAny(text, "\r\n"); isBase64([]byte(text)) != want {
			t.Errorf("%q: %t, want %t", text, !want, want)
		}
	})
}

// R12: however such a field is coded, and at each of its turns; without the
// suffix on the list nobody looks.
func TestBase64Fields(t *testing.T) {
	d, b := NewDecoder(NewWatchList().Base64("-bin"), 4096, 16<<10), new(Block)
	other := NewDecoder(NewWatchList(), 4096, 16<<10)
	for _, tt := range []struct {
		name, value string
		good        bool
	}{
		{"x-bin", "YQ==", true}, {"x-bin", "Y", false}, {"-bin", "Y", false}, {"bin", "Y", true},
		{"x-bin-", "Y", true}, {"authorization-bin", "YQ,YQ", false}, {"x-bin", strings.Repeat("A", 200), true},
	} {
		fields := append(grpcRequest("5S"), pairs(tt.name, tt.value)...)
		// Spelled out, then from the table.
		for i, in := range encoderBlocks(fields, fields, fields) {
			err := d.Transcode(b, in, RequestBlock)
			if good := err == nil; good != tt.good || !good && !errors.Is(err, MalformedBase64) {
				t.Errorf("%s: %s, block %d: %v", tt.name, tt.value, i+1, err)
			}
			if err := other.Transcode(b, in, RequestBlock); err != nil {
				t.Errorf("%s: %s, block %d, no suffix: %v", tt.name, tt.value, i+1, err)
			}
		}
		d.Init(d.watch, 4096, 16<<10)
		other.Init(other.watch, 4096, 16<<10)
	}
}

// The name alone may come from the table.
func TestBase64OfANameInTheTable(t *testing.T) {
	d, b := NewDecoder(NewWatchList().Base64("-bin"), 4096, 16<<10), new(Block)
	head := statelessRequest
	first := append(append([]byte(nil), head...), "\x40\x05x-bin\x04YQ=="...)
	if err := d.Transcode(b, first, RequestBlock); err != nil {
		t.Fatal(err)
	}
	second := append(append([]byte(nil), head...), "\x0f\x2f\x01Y"...) // index 62
	if err := d.Transcode(b, second, RequestBlock); !errors.Is(err, MalformedBase64) {
		t.Errorf("got %v", err)
	}
}
