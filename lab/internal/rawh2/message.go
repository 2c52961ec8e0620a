package rawh2

import "encoding/binary"

const (
	// PrefixBytes is the length of the gRPC message prefix.
	PrefixBytes = 5
	// MinMessage is the least size of a message without its prefix, in bytes.
	MinMessage = 16
	// MaxMessage is the most that fits in one DATA frame with the prefix.
	MaxMessage = MaxPayload - PrefixBytes
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
	if len(message) < PrefixBytes+MinMessage {
		return 1
	}
	return binary.BigEndian.Uint32(message[PrefixBytes:])
}

// Whole says whether message has all the bytes that its prefix announces.
func Whole(message []byte) bool {
	return len(message) >= PrefixBytes && len(message)-PrefixBytes >= int(binary.BigEndian.Uint32(message[1:]))
}
