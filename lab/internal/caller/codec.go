package caller

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
)

// codec sends bytes as they are, and counts those of answers. It is registered
// nowhere.
//
// Shape: a request is a []byte, an answer an *int.
type codec struct{}

var _ encoding.CodecV2 = codec{}

func (codec) Marshal(v any) (mem.BufferSlice, error) {
	message, ok := v.([]byte)
	if !ok {
		return nil, fmt.Errorf("internal error: a request of the type %T", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(message)}, nil
}

func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	size, ok := v.(*int)
	if !ok {
		return fmt.Errorf("internal error: an answer of the type %T", v)
	}
	*size = data.Len()
	return nil
}

// Name makes the content type application/grpc, as grpc-go sends it without a codec
// of the user's.
func (codec) Name() string { return "" }
