package door

import "bytes"

// Kind is what the first bytes of a connection look like.
type Kind uint8

const (
	// Unknown is bytes that begin nothing that is known here.
	Unknown Kind = iota
	// HTTP1 is a request line of HTTP/1, or the beginning of a long one.
	HTTP1
	// TLS is a handshake of TLS.
	TLS
)

// tlsHandshake is the type of the first record of TLS. Source: RFC 8446 5.1.
const tlsHandshake = 0x16

// KindOf looks at the first bytes of a connection that does not begin with the
// preface of HTTP/2. They may be few: nothing is waited for.
func KindOf(first []byte) Kind {
	line, _, whole := bytes.Cut(first, []byte("\n"))
	switch {
	case len(first) == 0:
		return Unknown
	case first[0] == tlsHandshake:
		return TLS
	case whole && bytes.Contains(line, []byte(" HTTP/1.")),
		!whole && 'A' <= first[0] && first[0] <= 'Z':
		return HTTP1
	}
	return Unknown
}
