package head

import (
	"bytes"
	"strconv"

	"github.com/cabrank/cabrank/internal/callers"
	"github.com/cabrank/cabrank/internal/door"
)

// Fields that the relay reads in requests and answers, by their ids in a watch list.
const (
	FieldMethod = iota
	FieldPath
	FieldStatus
	FieldContentType
	FieldTimeout
	FieldForwardedFor
	FieldGRPCStatus
	FieldGRPCMessage
	FieldPushback
	FieldHops
	FieldTries
	FieldUser
	FieldSocket
	FieldClient
	FieldTraceParent
	FieldTraceState
)

// Fields returns their names, in the order of their ids.
func Fields() []string {
	return []string{
		":method", ":path", ":status", "content-type", "grpc-timeout",
		callers.ForwardedFor, "grpc-status", "grpc-message", Pushback, hopsName, triesName,
		door.UserField, door.SocketField, door.ClientField, traceName, "tracestate",
	}
}

const (
	// Pushback is the field in which a gRPC answer says when to retry.
	//
	// Source: gRPC proposal A6, "Pushback".
	Pushback = "grpc-retry-pushback-ms"
	// hopsName is the field that counts the cabranks that a call has passed, through nested
	// calls too if workers pass the field on (R10).
	hopsName = "x-cabrank-hops"
	// triesName is the field that tells a worker how many attempts came before. Attempts that
	// were refused unseen do not count.
	//
	// Source: gRPC proposal A6, "Exposed Retry Metadata".
	triesName = "grpc-previous-rpc-attempts"
	// traceName is the field that says of which trace a call is a part.
	//
	// Source: W3C Trace Context.
	traceName = "traceparent"
	// maxHopsRead is the largest count of hops that is read.
	maxHopsRead = 1 << 20
)

const (
	// MaxAdded is the most by which Cabrank makes a header list longer, without the caller's
	// address: new fields grpc-timeout, x-forwarded-for, x-cabrank-hops and traceparent with 32 octets each
	// (RFC 9113 6.5.2), or longer numbers and a separator in those that the caller sent.
	MaxAdded = len("grpc-timeout") + 10 + 32 + len("x-forwarded-for") + 32 + len(hopsName) + 7 + 32 + len(traceName) + 55 + 32
	// maxTries is how much triesName adds to it.
	maxTries = len(triesName) + 10 + 32
)

// hopsOf reads a count of hops: the largest number of a list, because libraries join the
// value that they received with the one that they add. Anything else counts as 0: any
// caller can send the field, and in a real cycle the next call has a count written here.
func hopsOf(value []byte) (hops int) {
	for part := range bytes.SplitSeq(value, []byte(",")) {
		n := 0
		for _, c := range bytes.TrimSpace(part) {
			if c < '0' || c > '9' {
				n = 0
				break
			}
			n = min(10*n+int(c-'0'), maxHopsRead)
		}
		hops = max(hops, n)
	}
	return hops
}

// triesOf reads how many attempts the caller made before this call, 0 if the value is not
// a number.
func triesOf(value []byte) int {
	n, err := strconv.ParseUint(string(value), 10, 20)
	if err != nil {
		return 0
	}
	return int(n)
}

// hashOf returns the hash by which the policy ring_hash places a call. It is the same in
// every process, so that several instances send a key to the same endpoint. It is
// never 0: that is the hash of a call without a key.
//
// Source: FNV-1a (draft-eastlake-fnv), then the mixing of SplitMix64: the high bits of
// FNV-1a hardly differ for short texts that differ in the last octet only.
func hashOf(text []byte) uint64 {
	const (
		offset = 0xcbf29ce484222325
		prime  = 0x100000001b3
	)
	h := uint64(offset)
	for _, c := range text {
		h = (h ^ uint64(c)) * prime
	}
	h ^= h >> 30
	h *= 0xbf58476d1ce4e5b9
	h ^= h >> 27
	h *= 0x94d049bb133111eb
	h ^= h >> 31
	return max(h, 1)
}
