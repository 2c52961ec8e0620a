package echo

import "github.com/cabrank/cabrank/lab/internal/rawh2"

// form holds the header blocks of all answers. It is never changed.
type form struct {
	firstHead, head []byte
	trailers        []byte
}

func newForm() *form {
	f := &form{}
	f.firstHead, f.head = rawh2.Blocks(0, ":status", "200", "content-type", "application/grpc")
	_, f.trailers = rawh2.Blocks(0, "grpc-status", "0") // never the first of a connection
	return f
}

// backend answers the calls of one connection.
type backend struct {
	conn  *rawh2.Conn
	form  *form
	count *count

	head     []byte            // the block of the next head
	partial  map[uint32][]byte // messages that came in pieces, so far
	answered map[uint32]bool   // streams that wait for their end only
	after    []byte            // reused for the trailers frame
	done     uint64            // calls since the last batch

	received, sent uint64 // that the count has already
}

func newBackend(conn *rawh2.Conn, form *form, count *count) *backend {
	return &backend{conn: conn, form: form, count: count, head: form.firstHead, partial: map[uint32][]byte{}, answered: map[uint32]bool{}}
}

// Frame answers a call when its message is whole and its trailers when it has
// ended: a proxy may cut DATA anywhere and end the stream in an empty frame.
func (b *backend) Frame(f rawh2.Frame) error {
	switch {
	case f.Type == rawh2.TypeReset:
		b.forget(f.Stream)
	case f.Type == rawh2.TypeHeaders && f.Ended():
		return b.answer(f.Stream, nil, true)
	case f.Type == rawh2.TypeData && b.answered[f.Stream]:
		if f.Ended() {
			b.forget(f.Stream)
			b.done++
			b.conn.Headers(f.Stream, b.form.trailers, true)
		}
	case f.Type == rawh2.TypeData:
		return b.data(f)
	}
	return nil
}

func (b *backend) data(f rawh2.Frame) error {
	message := f.Payload
	if part, ok := b.partial[f.Stream]; ok {
		message = append(part, message...)
	}
	if !f.Ended() && !rawh2.Whole(message) {
		b.partial[f.Stream] = append([]byte(nil), message...)
		return nil
	}
	if len(b.partial) > 0 {
		delete(b.partial, f.Stream)
	}
	return b.answer(f.Stream, message, f.Ended())
}

// answer sends head and messages, and the trailers if the call has ended. A
// call without a whole message gets the head and trailers alone, which the
// load client counts as failed.
func (b *backend) answer(stream uint32, message []byte, ended bool) error {
	b.conn.Headers(stream, b.head, false)
	b.head = b.form.head
	b.after = b.after[:0]
	if ended {
		b.done++
		b.after = rawh2.AppendHeaders(b.after, stream, b.form.trailers, true)
	} else {
		b.answered[stream] = true
	}
	n := rawh2.Answers(message)
	for ; n > 1; n-- {
		if err := b.conn.Send(stream, message, false, nil); err != nil {
			return err
		}
	}
	return b.conn.Send(stream, message, false, b.after)
}

func (b *backend) forget(stream uint32) {
	delete(b.partial, stream)
	delete(b.answered, stream)
}

// BatchRead publishes what was done.
func (b *backend) BatchRead() error {
	b.publish()
	return nil
}

// publish adds to the count what it does not have yet.
func (b *backend) publish() {
	received, sent := b.conn.Bytes()
	b.count.calls.Add(b.done)
	b.count.received.Add(received - b.received)
	b.count.sent.Add(sent - b.sent)
	b.done, b.received, b.sent = 0, received, sent
}
