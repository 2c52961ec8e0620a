package connectcaller

import (
	"fmt"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
)

// message is a request, encoded.
type message []byte

// size is how many bytes an answer had.
type size int

// codec sends bytes as they are, and counts those of answers. Its name makes the content
// type.
//
// Shape: a request is a *message, an answer a *size.
// Concurrency: connect-go takes what Marshal returns for its own and writes into it later;
// so both copy.
type codec struct{ name string }

var _ connect.Codec = codec{}

func (c codec) Name() string { return c.name }

func (c codec) Marshal(v any) ([]byte, error) { return c.MarshalAppend(nil, v) }

// MarshalAppend spares connect-go a buffer for each message: it looks for this method.
func (codec) MarshalAppend(dst []byte, v any) ([]byte, error) {
	m, ok := v.(*message)
	if !ok {
		return nil, fmt.Errorf("internal error: a request of the type %T", v)
	}
	return append(dst, *m...), nil
}

func (codec) Unmarshal(data []byte, v any) error {
	switch v := v.(type) {
	case *size:
		*v = size(len(data))
		return nil
	case proto.Message: // the status of a gRPC call that failed
		return proto.Unmarshal(data, v)
	default:
		return fmt.Errorf("internal error: an answer of the type %T", v)
	}
}
