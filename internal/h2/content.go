package h2

import "math"

// contentLength is the field with the number of octets of DATA of a message.
// Source: RFC 9110 section 8.6, RFC 9113 section 8.1.1.
const contentLength = "content-length"

// Stream.contentLeft counts down from the peer's content-length. Without that field it
// begins at noContentLength, from where no peer ever gets down to maxContent, so that
// counting needs no special case. A length beyond maxContent counts as maxContent: no
// peer can send that much either.
const (
	noContentLength = math.MaxInt64
	maxContent      = math.MaxInt64 / 2
)

// promises reports whether a block has a content-length.
func (b *Block) promises() bool { return b.saw(b.watch.length) }

// promised is the content-length of a good block; noContentLength without one.
func (b *Block) promised() int64 {
	w, found := b.Watched(int(b.watch.length))
	if !found {
		return noContentLength
	}
	n := int64(0)
	for _, c := range w.Value {
		if n = n*10 + int64(c-'0'); n > maxContent/10 {
			return maxContent
		}
	}
	return n
}

// expect begins to count the content after the head in c.block. Most heads have no
// content-length.
func (c *Conn) expect(s *Stream) {
	switch b := c.block; {
	case s.noContent, b.Status == 204, b.Status == 304:
		s.contentLeft = 0 // content-length says what another request would have got
	case b.promises():
		s.contentLeft = b.promised()
	}
}

// contentComplete reports whether a message may end now: no promised content is left.
func contentComplete(left int64) bool { return left == 0 || left > maxContent }

// NoContent says that the answer on a stream, which is not open yet, has no content,
// whatever its content-length is: the request's method is HEAD (client role; RFC 9110
// section 9.3.2).
func (s *Stream) NoContent() { s.noContent = true }
