package grpcwire

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

func TestPrefix(t *testing.T) {
	for _, tt := range []struct {
		prefix Prefix
		wire   []byte
	}{
		{Prefix{}, []byte{0, 0, 0, 0, 0}},
		{Prefix{Compressed: true, Length: 1}, []byte{1, 0, 0, 0, 1}},
		{Prefix{Length: 0x01020304}, []byte{0, 1, 2, 3, 4}},
		{Prefix{Length: math.MaxUint32}, []byte{0, 255, 255, 255, 255}},
	} {
		if got := AppendPrefix(nil, tt.prefix); !bytes.Equal(got, tt.wire) {
			t.Errorf("AppendPrefix(%+v) = %x; want %x", tt.prefix, got, tt.wire)
		}
		if got, err := ParsePrefix(append(tt.wire, "the message"...)); err != nil || got != tt.prefix {
			t.Errorf("ParsePrefix(%x) = %+v, %v; want %+v", tt.wire, got, err, tt.prefix)
		}
		for n := range tt.wire {
			if _, err := ParsePrefix(tt.wire[:n]); !errors.Is(err, ErrPrefixIncomplete) {
				t.Errorf("ParsePrefix(%x): %v; want ErrPrefixIncomplete", tt.wire[:n], err)
			}
		}
	}
	for _, flag := range []byte{2, 0x80, 0xff} {
		_, err := ParsePrefix([]byte{flag, 0, 0, 0, 0})
		testkit.Want(t, errors.Is(err, ErrPrefixFlag), "flag %d: %v; want ErrPrefixFlag", flag, err)
	}
}

func TestIsGRPC(t *testing.T) {
	for contentType, want := range map[string]bool{
		"application/grpc":               true,
		"application/grpc+proto":         true,
		"application/grpc+json":          true,
		"application/grpc;charset=utf-8": true,
		"application/grpc-web":           false,
		"application/grpc-web+proto":     false,
		"application/grpcx":              false,
		"application/grp":                false,
		"application/json":               false,
		"":                               false,
	} {
		testkit.Equal(t, IsGRPC([]byte(contentType)), want, "IsGRPC(%q)", contentType)
	}
}

func TestMessage(t *testing.T) {
	for text, wire := range map[string]string{
		"":                 "",
		"queue full":       "queue full",
		"100%":             "100%25",
		"a\tb\r\n":         "a%09b%0D%0A",
		"déjà":             "d%C3%A9j%C3%A0",
		" both ends ":      "%20both ends%20",
		"~\x7f":            "~%7F",
		"\x00":             "%00",
		" ":                "%20",
		"cabrank: no slot": "cabrank: no slot",
	} {
		testkit.Equal(t, string(AppendMessage(nil, text)), wire, "AppendMessage(%q)", text)
		testkit.Equal(t, string(DecodeMessage(nil, []byte(wire))), text, "DecodeMessage(%q)", wire)
	}
}

func TestDecodeMessageTolerates(t *testing.T) {
	for wire, text := range map[string]string{
		"100%": "100%", "%": "%", "%4": "%4", "%zz": "%zz", "%4z": "%4z",
		"%41%": "A%", "%%41": "%A", "%c3%a9": "é", "%ff": "\xff", "raw é": "raw é",
	} {
		testkit.Equal(t, string(DecodeMessage([]byte("> "), []byte(wire))), "> "+text, "DecodeMessage(%q)", wire)
	}
}

func FuzzMessage(f *testing.F) {
	for _, text := range []string{"", "100%", " x ", "é%41", "\x00\xff", "%zz"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		wire := AppendMessage(nil, text)
		if len(wire) > 0 && (wire[0] == ' ' || wire[len(wire)-1] == ' ') {
			t.Errorf("%q begins or ends with a space", wire)
		}
		for _, c := range wire {
			testkit.Want(t, c >= ' ' && c <= '~', "%q is not printable", wire)
		}
		if got := DecodeMessage(nil, wire); string(got) != text {
			t.Errorf("%q came back from %q as %q", text, wire, got)
		}
		if got := DecodeMessage(nil, []byte(text)); len(got) > len(text) {
			t.Errorf("DecodeMessage(%q) grew to %q", text, got)
		}
	})
}

func TestMessageAllocatesNothing(t *testing.T) {
	dst, wire := make([]byte, 0, 64), []byte("No free threads in thread pool%21")
	contentType := []byte("application/grpc+proto")
	allocs := testing.AllocsPerRun(100, func() {
		dst = DecodeMessage(dst[:0], wire)
		dst = AppendMessage(dst[:0], "cabrank: queue full")
		dst = AppendPrefix(dst[:0], Prefix{Length: 7})
		if p, err := ParsePrefix(dst); err != nil || p.Length != 7 || !IsGRPC(contentType) {
			t.Fatal(p, err)
		}
		if c, ok := ParseCode(wire[:1]); ok || c.String() != "UNKNOWN" {
			t.Fatal(c)
		}
	})
	testkit.Want(t, allocs == 0, "%v allocations", allocs)
}

func BenchmarkDecodeMessage(b *testing.B) {
	dst, wire := make([]byte, 0, 64), []byte("No free threads in thread pool")
	b.ReportAllocs()
	for b.Loop() {
		dst = DecodeMessage(dst[:0], wire)
	}
}
