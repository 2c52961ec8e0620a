package connect

import (
	"github.com/cabrank/cabrank/internal/grpcwire"
)

func errNoMemory() *StatusError {
	return fail(grpcwire.ResourceExhausted, "there is no memory for this message")
}

// toProtobuf turns a value into a message with room for a prefix, whose capacity is taken
// from a budget.
func (c *call) toProtobuf(value []byte, from grpcwire.Budget) ([]byte, error) {
	defer c.turn(len(value))()
	weight := c.method.WeighRequest(value)
	if !from.Take(weight) {
		return nil, errNoMemory()
	}
	defer from.Give(weight)
	b, err := c.method.AppendRequest(make([]byte, grpcwire.PrefixLen, grpcwire.PrefixLen+len(value)), value)
	if err != nil {
		return nil, fail(grpcwire.InvalidArgument, err.Error())
	}
	if !from.Take(cap(b)) {
		return nil, errNoMemory()
	}
	return b, nil
}

// toJSON turns a message into a value behind room for a prefix, whose capacity is taken from
// a budget.
func (c *call) toJSON(message []byte, from grpcwire.Budget) ([]byte, error) {
	defer c.turn(len(message))()
	work, text := c.method.WeighAnswer(message)
	if !from.Take(work + text) {
		return nil, errNoMemory()
	}
	b, err := c.method.AppendAnswer(make([]byte, grpcwire.PrefixLen, grpcwire.PrefixLen+text), message)
	from.Give(work + text)
	if err != nil {
		return nil, fail(grpcwire.Internal, "the answer is not what the schema says: "+err.Error())
	}
	if !from.Take(cap(b)) {
		return nil, errNoMemory()
	}
	return b, nil
}

// turn waits for a turn at a long value: a message may take fifty times the memory of its JSON.
func (c *call) turn(length int) (done func()) {
	if length < longValue {
		return func() {}
	}
	c.turns <- struct{}{}
	return func() { <-c.turns }
}
