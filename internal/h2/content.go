package h2

import "math"

// contentLength is the field that says how many octets of DATA a message has.
// Source: RFC 9110 section 8.6, RFC 9113 section 8.1.1.
const contentLength = "content-length"

// A stream counts down what its peer's content-length has promised. Without a
// promise it begins at noPromise, from where no peer ever gets down to
// maxPromise, so that counting needs no case of its own. A length beyond
// maxPromise counts as that: it cannot come true either.
const (
	noPromise  = math.MaxInt64
	maxPromise = math.MaxInt64 / 2
)

// promises reports whether a block has a content-length.
func (b *Block) promises() bool { return b.saw(b.watch.length) }

// promised is what the content-length of a block that was found good promises.
func (b *Block) promised() int64 {
	w, found := b.Watched(int(b.watch.length))
	if !found {
		return noPromise
	}
	n := int64(0)
	for _, c := range w.Value {
		if n = n*10 + int64(c-'0'); n > maxPromise/10 {
			return maxPromise
		}
	}
	return n
}

// expect begins to count the content behind a head, which is in c.block. A
// stream begins with no promise, and most heads make none.
func (c *Conn) expect(s *Stream) {
	switch b := c.block; {
	case s.noContent, b.Status == 204, b.Status == 304:
		s.promise = 0 // content-length says what another request would have got
	case b.promises():
		s.promise = b.promised()
	}
}

// kept reports whether a message may end now: all that was promised has come.
func kept(promise int64) bool { return promise == 0 || promise > maxPromise }

// NoContent says of a stream that is not open yet that its answer has no
// content, whatever its content-length says: the request's method is HEAD
// (client role; RFC 9110 section 9.3.2).
func (s *Stream) NoContent() { s.noContent = true }
