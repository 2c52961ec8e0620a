package method

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
)

// Codec passes messages on as the bytes that they are. Give it to each call by
// grpc.ForceCodecV2; it is registered nowhere, so that others in the process keep
// theirs.
//
// Shape: a request is a []byte, which is not changed and must not be until the call
// has ended. A reply is a *[]byte, which takes a copy into the room it has, or a *Size,
// which only counts.
type Codec struct{}

// Size takes the length of a reply in place of the reply, in bytes.
type Size int

var _ encoding.CodecV2 = Codec{}

// Marshal returns the bytes of a request.
func (Codec) Marshal(v any) (mem.BufferSlice, error) {
	encoded, ok := v.([]byte)
	if !ok {
		return nil, fmt.Errorf("internal error: a request of the type %T, not []byte", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(encoded)}, nil
}

// Unmarshal takes the bytes of a reply, or their number.
func (Codec) Unmarshal(data mem.BufferSlice, v any) error {
	switch reply := v.(type) {
	case *Size:
		*reply = Size(data.Len())
	case *[]byte:
		room := *reply
		if cap(room) < data.Len() {
			room = make([]byte, data.Len())
		}
		*reply = room[:data.Len()]
		data.CopyTo(*reply)
	default:
		return fmt.Errorf("internal error: a reply of the type %T, not *[]byte or *Size", v)
	}
	return nil
}

// Name makes the content type application/grpc+proto.
func (Codec) Name() string { return "proto" }
