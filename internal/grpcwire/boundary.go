package grpcwire

import "encoding/binary"

// Boundary follows where the messages of one direction of a call end, as their
// bytes go by in pieces of any size. The zero value is in front of the first one.
//
// Bytes that are no messages, as told by a first byte other than 0 and 1, are not
// followed any further: they count as whole.
// Source: gRPC over HTTP/2, "Length-Prefixed-Message".
type Boundary struct {
	size   uint32 // of the message that comes, as far as its prefix is here
	body   uint32 // bytes of it that are still to come
	prefix uint8  // bytes of its prefix that have come, as long as they are not all
	lost   bool   // what comes is no messages
}

// Take goes on by p.
func (b *Boundary) Take(p []byte) {
	for len(p) > 0 && !b.lost {
		switch {
		case b.body > 0:
			n := min(b.body, uint32(min(len(p), 1<<30)))
			b.body -= n
			p = p[n:]
		case b.prefix == 0 && len(p) >= PrefixLen && p[0] <= 1: // nearly always
			b.size = binary.BigEndian.Uint32(p[1:])
			b.body = b.size
			p = p[PrefixLen:]
		default:
			b.takeByte(p[0])
			p = p[1:]
		}
	}
}

// takeByte goes on by one byte of a prefix that comes in pieces.
func (b *Boundary) takeByte(x byte) {
	if b.prefix == 0 {
		b.lost, b.size = x > 1, 0
	} else {
		b.size = b.size<<8 | uint32(x)
	}
	if b.prefix++; b.prefix == PrefixLen {
		b.prefix, b.body = 0, b.size
	}
}

// Begun returns how many bytes have come of a message that is not whole yet; 0
// between two messages.
func (b *Boundary) Begun() int {
	switch {
	case b.lost:
		return 0
	case b.body > 0:
		return PrefixLen + int(b.size-b.body)
	default:
		return int(b.prefix)
	}
}

// Rest returns how many of the bytes that come next, p, belong to the message that
// has begun: all of them if it does not end in p, none between two messages.
func (b *Boundary) Rest(p []byte) int {
	next := *b
	for n := range p {
		if next.Begun() == 0 {
			return n
		}
		if next.body > 0 {
			return n + int(min(next.body, uint32(min(len(p)-n, 1<<30))))
		}
		next.takeByte(p[n])
	}
	return len(p)
}
