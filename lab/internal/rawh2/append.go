package rawh2

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// AppendHeaders appends a HEADERS frame with a whole header block.
func AppendHeaders(b []byte, stream uint32, block []byte, end bool) []byte {
	flags := http2.FlagHeadersEndHeaders
	if end {
		flags |= http2.FlagHeadersEndStream
	}
	return append(appendHeader(b, len(block), http2.FrameHeaders, flags, stream), block...)
}

func appendHeader(b []byte, size int, kind http2.FrameType, flags http2.Flags, stream uint32) []byte {
	b = append(b, byte(size>>16), byte(size>>8), byte(size), byte(kind), byte(flags))
	return binary.BigEndian.AppendUint32(b, stream)
}

func appendSetting(b []byte, id http2.SettingID, value uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(b, uint16(id)), value)
}

func appendWindowUpdate(b []byte, bytes uint32) []byte {
	return binary.BigEndian.AppendUint32(appendHeader(b, 4, http2.FrameWindowUpdate, 0, 0), bytes)
}

// Blocks encodes one header list (names and values alternating) twice, for the
// first use on a connection, which sets the dynamic table to 0 bytes, and for all
// later ones, which are stateless.
func Blocks(kv ...string) (first, later []byte) {
	var b bytes.Buffer
	enc := hpack.NewEncoder(&b)
	enc.SetMaxDynamicTableSize(0)
	encode := func() []byte {
		b.Reset()
		for i := 0; i < len(kv); i += 2 {
			enc.WriteField(hpack.HeaderField{Name: kv[i], Value: kv[i+1]}) //nolint:errcheck // a buffer takes everything
		}
		return bytes.Clone(b.Bytes())
	}
	return encode(), encode()
}

// BlockMemo remembers header blocks that hold wanted values. It is sound only
// while the peer may not use a dynamic table, as after our SETTINGS.
type BlockMemo struct {
	good [4][]byte // bounds the memo; proxies use one or two forms
	next int
}

// Holds says whether the block has every wanted name with its value (names and
// values alternating). A memo must always be asked for the same ones.
func (m *BlockMemo) Holds(block []byte, kv ...string) bool {
	for _, g := range m.good {
		if g != nil && bytes.Equal(g, block) {
			return true
		}
	}
	fields, err := hpack.NewDecoder(4096, nil).DecodeFull(block)
	if err != nil {
		return false
	}
	for i := 0; i < len(kv); i += 2 {
		if !contains(fields, kv[i], kv[i+1]) {
			return false
		}
	}
	m.good[m.next] = bytes.Clone(block)
	m.next = (m.next + 1) % len(m.good)
	return true
}

func contains(fields []hpack.HeaderField, name, value string) bool {
	for _, f := range fields {
		if f.Name == name && f.Value == value {
			return true
		}
	}
	return false
}
