package callers

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/cabrank/cabrank/internal/door"
	"github.com/cabrank/cabrank/internal/h2"
)

// Unclaimed returns the fields of a block without those that only Cabrank may set.
func Unclaimed(block []byte) []h2.Field {
	fields := make([]h2.Field, 0, 16)
	for name, value := range h2.Fields(block).All() {
		if !door.IsClaim(name) {
			fields = append(fields, h2.Field{Name: name, Value: value})
		}
	}
	return fields
}

// AddHeader returns the list with the header fields of a door's caller, without fields of
// its connection and fields that the door itself sets.
func AddHeader(f h2.Fields, h http.Header) h2.Fields {
	own := make(map[string]bool)
	for name := range f.All() {
		own[name] = true
	}
	for _, list := range h["Connection"] {
		for name := range strings.SplitSeq(list, ",") {
			own[strings.ToLower(strings.TrimSpace(name))] = true
		}
	}
	f = slices.Clip(f)
	for _, name := range slices.Sorted(maps.Keys(h)) {
		name, values := strings.ToLower(name), h[name]
		if own[name] || ofDoor(name) {
			continue
		}
		for _, value := range values {
			f = f.Add(name, value)
		}
	}
	return f
}

// ofDoor reports whether a field is of a connection (RFC 9110 7.6.1), or one that only a
// door sets: about the request or about its caller.
func ofDoor(name string) bool {
	switch name {
	case "connection", "keep-alive", "proxy-connection", "proxy-authorization", "te", "trailer", "transfer-encoding", "upgrade",
		"host", "content-length", "expect":
		return true
	}
	return strings.HasPrefix(name, "grpc-") || strings.HasPrefix(name, "connect-") || door.IsClaim(name)
}
