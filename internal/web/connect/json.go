package connect

import (
	"bytes"
	"compress/gzip"
	"io"

	"github.com/cabrank/cabrank/internal/grpcwire"
)

// toProtobuf turns a value into a message with its prefix, whose capacity is taken from a
// budget.
func (c *call) toProtobuf(value []byte, packed bool, from grpcwire.Budget) ([]byte, error) {
	if packed && len(value) > 0 {
		var err error
		if value, err = unpacked(value, from); err != nil {
			return nil, err
		}
		defer from.Give(len(value))
	}
	weigh := func(value []byte) (work, room int) { return c.method.WeighRequest(value), len(value) }
	return c.turned(value, from, weigh, c.method.AppendRequest, fail(grpcwire.InvalidArgument, ""))
}

// toJSON turns a message into a value with a prefix, whose capacity is taken from a budget.
func (c *call) toJSON(message []byte, from grpcwire.Budget) ([]byte, error) {
	return c.turned(message, from, c.method.WeighAnswer, c.method.AppendAnswer, fail(grpcwire.Internal, "the answer is not what the schema says: "))
}

// turned has something turned behind a prefix; blame is whose fault it is if it cannot be. A
// message may take fifty times the memory of its JSON: long ones wait for a turn.
func (c *call) turned(from []byte, budget grpcwire.Budget, weigh func([]byte) (work, room int), turn func(b, from []byte) ([]byte, error), blame *StatusError) ([]byte, error) {
	if len(from) >= longValue {
		c.turns <- struct{}{}
		defer func() { <-c.turns }()
	}
	work, room := weigh(from)
	if !budget.Take(work + room) {
		return nil, grpcwire.ErrNoRoom
	}
	b, err := turn(make([]byte, grpcwire.PrefixLen, grpcwire.PrefixLen+room), from)
	budget.Give(work + room)
	switch {
	case err != nil:
		blame.Text += err.Error()
		return nil, blame
	case !budget.Take(cap(b)):
		return nil, grpcwire.ErrNoRoom
	}
	grpcwire.AppendPrefix(b[:0], grpcwire.Prefix{Length: uint32(len(b) - grpcwire.PrefixLen)})
	return b, nil
}

// unpacked returns what is in a compressed value, which is measured first: it may be much more.
// Its length is taken from a budget.
func unpacked(value []byte, from grpcwire.Budget) ([]byte, error) {
	in, size := new(gzip.Reader), int64(0)
	err := in.Reset(bytes.NewReader(value))
	if err == nil {
		size, err = io.Copy(io.Discard, io.LimitReader(in, mostMessage+1))
	}
	switch {
	case err != nil:
		return nil, fail(grpcwire.InvalidArgument, "the message is not what gzip writes")
	case size > mostMessage:
		return nil, grpcwire.ErrTooLong
	case !from.Take(int(size)):
		return nil, grpcwire.ErrNoRoom
	}
	out := make([]byte, size)
	_ = in.Reset(bytes.NewReader(value)) // it was read a moment ago
	_, err = io.ReadFull(in, out)
	return out, err
}
