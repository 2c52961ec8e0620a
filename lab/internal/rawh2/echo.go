package rawh2

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/net/http2"
	"golang.org/x/sync/errgroup"
)

// Echo answers every call with its own message, as often as the message says, and
// "grpc-status 0", until ctx ends: at an address, host:port, and as many ports behind it
// as makes ports of them. Health checks are answered so, too: no status is not NOT_SERVING.
// Connections that are open then are not waited for. It is one process for all workers:
// several on a core cut the batches of what stands before them.
//
// Errors: an address that cannot be listened on, or a listener that broke.
func Echo(ctx context.Context, addr string, ports int) error {
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	first, err := strconv.Atoi(text)
	if err != nil {
		return err
	}
	var f form
	f.firstHead, f.head = Blocks(":status", "200", "content-type", "application/grpc")
	_, f.trailers = Blocks("grpc-status", "0") // never the first of a connection
	serving, ctx := errgroup.WithContext(ctx)
	for port := first + ports - 1; port >= first; port-- { // who asks at the first finds all
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err != nil {
			return err // and the process ends
		}
		context.AfterFunc(ctx, func() { l.Close() })
		serving.Go(func() error { return accept(l, f) })
	}
	return serving.Wait()
}

func accept(l net.Listener, f form) error {
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		go echo(c, f) // ends with the connection
	}
}

func echo(c net.Conn, f form) {
	defer c.Close()
	conn := NewConn(c, false, readBuffer)
	err := conn.Serve(&backend{conn: conn, form: f, head: f.firstHead, partial: map[uint32][]byte{}, answered: map[uint32]bool{}})
	if !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
		fmt.Fprintln(os.Stderr, "echo:", err)
	}
}

type backend struct {
	conn *Conn
	form form

	head     []byte            // the block of the next head
	partial  map[uint32][]byte // messages that came in pieces, so far
	answered map[uint32]bool   // streams that wait for their end only
	after    []byte            // reused for the trailers frame
}

// Frame answers a call when its message is whole and its trailers when it has
// ended: a proxy may cut DATA anywhere and end the stream in an empty frame.
func (b *backend) Frame(f Frame) error {
	switch {
	case f.Type == http2.FrameRSTStream:
		b.forget(f.Stream)
	case f.Type == http2.FrameHeaders && f.Ended():
		return b.answer(f.Stream, nil, true)
	case f.Type == http2.FrameData && b.answered[f.Stream]:
		if f.Ended() {
			b.forget(f.Stream)
			b.conn.Headers(f.Stream, b.form.trailers, true)
		}
	case f.Type == http2.FrameData:
		return b.data(f)
	}
	return nil
}

func (b *backend) data(f Frame) error {
	message := f.Payload
	if part, ok := b.partial[f.Stream]; ok {
		message = append(part, message...)
	}
	if !f.Ended() && !Whole(message) {
		b.partial[f.Stream] = append([]byte(nil), message...)
		return nil
	}
	if len(b.partial) > 0 {
		delete(b.partial, f.Stream)
	}
	return b.answer(f.Stream, message, f.Ended())
}

// answer sends head and messages, and the trailers if the call has ended. A call without a
// whole message gets the head and trailers alone, which the client counts as failed.
func (b *backend) answer(stream uint32, message []byte, ended bool) error {
	b.conn.Headers(stream, b.head, false)
	b.head = b.form.head
	b.after = b.after[:0]
	if ended {
		b.after = AppendHeaders(b.after, stream, b.form.trailers, true)
	} else {
		b.answered[stream] = true
	}
	for n := Answers(message); n > 1; n-- {
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

func (b *backend) BatchRead() error { return nil }

// Sizes of messages, in bytes.
const (
	prefixBytes = 5                        // the length of the gRPC message prefix
	MinMessage  = 16                       // the least size of a message without its prefix, in bytes
	MaxMessage  = maxPayload - prefixBytes // the most that fits in one DATA frame with the prefix
)

// AppendMessage appends a gRPC message that says how often it is answered.
//
// Shape: prefix (0, length), then size bytes: answers, connection and call as
// big-endian 4, 4 and 8 bytes, and a filler that depends on the call.
func AppendMessage(b []byte, size int, answers, conn uint32, call uint64) []byte {
	b = append(b, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(size))
	b = binary.BigEndian.AppendUint32(b, answers)
	b = binary.BigEndian.AppendUint32(b, conn)
	b = binary.BigEndian.AppendUint64(b, call)
	for n := size - MinMessage; n > 0; n-- {
		b = append(b, byte(call))
	}
	return b
}

// Answers reads from a whole message how often it wants to be answered.
func Answers(message []byte) uint32 {
	if len(message) < prefixBytes+MinMessage {
		return 1
	}
	return binary.BigEndian.Uint32(message[prefixBytes:])
}

// Whole says whether message has all the bytes that its prefix announces.
func Whole(message []byte) bool {
	return len(message) >= prefixBytes && len(message)-prefixBytes >= int(binary.BigEndian.Uint32(message[1:]))
}
