package grpcwire

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// PrefixLen is the length of the prefix of every message.
const PrefixLen = 5

// Prefix stands in front of every message in DATA.
//
// Shape: one octet, 1 if the message is compressed and else 0; then the length
// of the message as four octets in network order.
// Source: gRPC over HTTP/2, "Length-Prefixed-Message".
type Prefix struct {
	Compressed bool
	Length     uint32 // of the message without its prefix, in octets
}

// Outcomes of ParsePrefix.
var (
	// ErrPrefixIncomplete means that fewer than PrefixLen octets are there;
	// the caller asks again with more.
	ErrPrefixIncomplete = errors.New("grpc message: prefix is not complete")
	// ErrPrefixFlag means that the first octet is neither 0 nor 1: the peer
	// does not speak gRPC.
	ErrPrefixFlag = errors.New("grpc message: compressed flag is neither 0 nor 1")
)

// ParsePrefix reads the prefix at the beginning of b.
func ParsePrefix(b []byte) (Prefix, error) {
	if len(b) < PrefixLen {
		return Prefix{}, ErrPrefixIncomplete
	}
	if b[0] > 1 {
		return Prefix{}, ErrPrefixFlag
	}
	return Prefix{Compressed: b[0] == 1, Length: binary.BigEndian.Uint32(b[1:])}, nil
}

// AppendPrefix appends the prefix of a message.
func AppendPrefix(dst []byte, p Prefix) []byte {
	var flag byte
	if p.Compressed {
		flag = 1
	}
	return binary.BigEndian.AppendUint32(append(dst, flag), p.Length)
}

// ContentType is that of gRPC whose codec is not named.
const ContentType = "application/grpc"

// IsGRPC reports whether a content-type is that of gRPC: application/grpc
// alone, with +codec, or with ;parameters. gRPC-Web is another protocol.
func IsGRPC(contentType []byte) bool {
	rest, found := bytes.CutPrefix(contentType, []byte(ContentType))
	if !found {
		return false
	}
	return len(rest) == 0 || rest[0] == '+' || rest[0] == ';'
}
