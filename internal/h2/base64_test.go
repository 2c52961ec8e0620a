package h2

import (
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// R12: what a field with the suffix may hold. The last ones of each row are
// what a server on gRPC's C core ends its connection for.
func TestBase64(t *testing.T) {
	for value, good := range map[string]bool{
		"": true, "YQ==": true, "YQ=": true, "YQ": true, "YWI=": true, "YWI": true, "YWJj": true, "+/+/": true, "AAAA": true, "=": true,
		"Y": false, "YR": false, "YWJ": false, "-_8=": false, "Y Q=": false, "YQ==,YQ==": false, "YQ,YQ": false, "\xff": false, "\x01": false,
		"====": false, "YQ==YQ==": false, "=YQ": false, "YWJjY": false,
	} {
		testkit.Want(t, isBase64([]byte(value)) == good, "%q: %t", value, !good)
	}
}

func FuzzBase64(f *testing.F) {
	f.Add([]byte("YWJj"), "YQ")
	f.Fuzz(func(t *testing.T, plain []byte, text string) {
		for _, coding := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding} {
			value := coding.EncodeToString(plain)
			testkit.Want(t, isBase64([]byte(value)), "%q is refused", value)
		}
		trimmed := strings.TrimSuffix(strings.TrimSuffix(text, "="), "=")
		_, err := base64.RawStdEncoding.Strict().DecodeString(trimmed)
		// That decoder takes line breaks, which no field has.
		want := err == nil && !strings.ContainsAny(text, "\r\n")
		testkit.Want(t, isBase64([]byte(text)) == want, "%q: %t, want %t", text, !want, want)
	})
}

// R12: however such a field is coded, and at each of its turns; without the
// suffix on the list nobody looks.
func TestBase64Fields(t *testing.T) {
	d, b := newDecoder(NewWatchList().Base64("-bin"), 4096, 16<<10), new(Block)
	other := newDecoder(NewWatchList(), 4096, 16<<10)
	for _, tt := range []struct {
		name, value string
		good        bool
	}{
		{"x-bin", "YQ==", true}, {"x-bin", "Y", false}, {"-bin", "Y", false}, {"bin", "Y", true},
		{"x-bin-", "Y", true}, {"authorization-bin", "YQ,YQ", true}, {"x-bin", strings.Repeat("A", 200), true},
		{"x-bin", "YQ,Y", false}, {"x-bin", "Y,YQ", false}, {"x-bin", "YQ==, YWI=\t,\tYWJj", true}, {"x-bin", ",", true},
		{"x-bin", "YQ Y,YQ", false}, {"x-bin", "YQ;YQ", false},
	} {
		fields := append(grpcRequest("5S"), pairs(tt.name, tt.value)...)
		// Spelled out, then from the table.
		for i, in := range encoderBlocks(fields, fields, fields) {
			err := d.Transcode(b, in, RequestBlock)
			if good := err == nil; good != tt.good || !good && !errors.Is(err, MalformedBase64) {
				t.Errorf("%s: %s, block %d: %v", tt.name, tt.value, i+1, err)
			}
			err = other.Transcode(b, in, RequestBlock)
			testkit.Want(t, err == nil, "%s: %s, block %d, no suffix: %v", tt.name, tt.value, i+1, err)
		}
		d.Init(d.watch, 4096, 16<<10)
		other.Init(other.watch, 4096, 16<<10)
	}
}

// The name alone may come from the table.
func TestBase64OfANameInTheTable(t *testing.T) {
	d, b := newDecoder(NewWatchList().Base64("-bin"), 4096, 16<<10), new(Block)
	head := statelessRequest
	first := append(append([]byte(nil), head...), "\x40\x05x-bin\x04YQ=="...)
	testkit.Must(t, d.Transcode(b, first, RequestBlock))
	second := append(append([]byte(nil), head...), "\x0f\x2f\x01Y"...) // index 62
	err := d.Transcode(b, second, RequestBlock)
	testkit.Want(t, errors.Is(err, MalformedBase64), "got %v", err)
}

// gRPC over HTTP/2, Custom-Metadata: binary values that were joined are put out as a
// field each, however they are coded, and at each of their turns; the owner's own
// fields stand where they stood.
func TestBase64Lists(t *testing.T) {
	d, b := newDecoder(testWatch().Base64("-bin"), 4096, 16<<10), new(Block)
	joined := append(grpcRequest(""), pairs("x-bin", "YQ==,YWI , YWJj,", "grpc-timeout", "5S", "x-bin", "YWJj,YQ")...)
	split := append(grpcRequest(""), pairs("x-bin", "YQ==", "x-bin", "YWI", "x-bin", "YWJj", "x-bin", "", "grpc-timeout", "5S", "x-bin", "YWJj", "x-bin", "YQ")...)
	secret := slices.Clone(joined)
	secret[len(grpcRequest(""))].Sensitive = true
	for i, in := range encoderBlocks(joined, joined, secret, joined, joined) {
		err := d.Transcode(b, in, RequestBlock)
		testkit.Need(t, err == nil, "block %d: %v", i+1, err)
		got := readStateless(t, b.Enc)
		for at := range got {
			first := len(grpcRequest(""))
			want := i == 2 && first <= at && at < first+4
			testkit.Want(t, got[at].Sensitive == want, "block %d: %q never indexed: %t", i+1, got[at].Name, !want)
			got[at].Sensitive = false
		}
		testkit.Want(t, slices.Equal(got, split), "block %d became %q; want %q", i+1, list(got), list(split))
		size := 0
		for _, f := range split {
			size += int(f.Size())
		}
		testkit.Want(t, b.ListSize == size && b.Fields == len(split),
			"block %d: %d fields of %d octets; want %d of %d", i+1, b.Fields, b.ListSize, len(split), size)
		w, _ := b.Watched(watchTimeout)
		testkit.Want(t, string(w.Value) == "5S", "block %d: grpc-timeout is %q", i+1, w.Value)
	}
}

// R12: what a list becomes is bounded as any list is, however short it came.
func TestBase64ListIsNoBomb(t *testing.T) {
	d, b := newDecoder(NewWatchList().Base64("-bin"), 4096, 16<<10), new(Block)
	bomb := append(grpcRequest(""), pairs(strings.Repeat("x", 1000)+"-bin", strings.Repeat(",", 2000))...)
	for i, in := range encoderBlocks(bomb, bomb) {
		testkit.Is(t, d.Transcode(b, in, RequestBlock), ErrListTooLarge, "block %d", i+1)
		if len(b.Enc) > 16<<10 || cap(b.Enc) > 64<<10 {
			t.Errorf("block %d: %d octets are put out, of room for %d", i+1, len(b.Enc), cap(b.Enc))
		}
	}
}
