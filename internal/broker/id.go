package broker

import (
	"crypto/rand"
	"encoding/hex"
)

// NewID returns a random UUID, of version 4, in letters of lower case.
// Source: RFC 9562, section 5.4.
func NewID() string { return string(AppendID(nil)) }

// AppendID appends a random UUID like NewID.
func AppendID(b []byte) []byte {
	var random [16]byte
	rand.Read(random[:])
	random[6], random[8] = random[6]&0x0f|0x40, random[8]&0x3f|0x80
	from := 0
	for i, end := range [5]int{4, 6, 8, 10, 16} {
		if i > 0 {
			b = append(b, '-')
		}
		b = hex.AppendEncode(b, random[from:end])
		from = end
	}
	return b
}
