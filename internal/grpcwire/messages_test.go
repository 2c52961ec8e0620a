package grpcwire

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// allowance is a budget with a bound.
type allowance struct{ most, used int }

func (a *allowance) Take(n int) bool {
	if a.used+n > a.most {
		return false
	}
	a.used += n
	return true
}

func (a *allowance) Give(n int) { a.used -= n }

// Messages come whole, however their bytes do, and an end in one is no end.
func TestMessages(t *testing.T) {
	one := string(AppendPrefix(nil, Prefix{Length: 3})) + "abc"
	packed := string(AppendPrefix(nil, Prefix{Compressed: true, Length: 1})) + "z"
	for stream, want := range map[string]struct {
		messages string
		err      error
	}{
		"":                           {"", io.EOF},
		one:                          {"abc ", io.EOF},
		one + packed:                 {"abc z! ", io.EOF},
		one[:3]:                      {"", io.ErrUnexpectedEOF},
		one[:6]:                      {"", io.ErrUnexpectedEOF},
		one + "\x02\x00\x00\x00\x00": {"abc ", ErrPrefixFlag},
		one + "\x00\x00\x01\x00\x01": {"abc ", ErrTooLong},
	} {
		for name, from := range map[string]io.Reader{
			"at once": strings.NewReader(stream), "byte by byte": iotest.OneByteReader(strings.NewReader(stream)), "with its end": iotest.DataErrReader(strings.NewReader(stream)),
		} {
			budget := &allowance{most: 1 << 20}
			m := Messages{From: from, Budget: budget, Most: 64 << 10}
			got, err := "", error(nil)
			for err == nil {
				var message []byte
				var compressed bool
				if message, compressed, err = m.Next(); err == nil {
					if got += string(message); compressed {
						got += "!"
					}
					got += " "
				}
			}
			if m.Free(); got != want.messages || !errors.Is(err, want.err) || budget.used != 0 {
				t.Errorf("%q, %s: %q, %v, %d bytes are left", stream, name, got, err, budget.used)
			}
		}
	}
}

// Messages take no more memory than there is, and as much of it as has come.
func TestMemoryOfMessages(t *testing.T) {
	long := append(AppendPrefix(nil, Prefix{Length: 1 << 20}), make([]byte, 40<<10)...)
	for most, want := range map[int]error{1 << 20: io.ErrUnexpectedEOF, 32 << 10: ErrNoRoom} {
		budget := &allowance{most: most}
		m := Messages{From: bytes.NewReader(long), Budget: budget, Most: 4 << 20}
		if _, _, err := m.Next(); !errors.Is(err, want) || budget.used > 100<<10 {
			t.Errorf("%v, %d bytes are held", err, budget.used)
		}
		if m.Free(); budget.used != 0 {
			t.Errorf("%d bytes are left", budget.used)
		}
	}
}
