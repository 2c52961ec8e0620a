package relay

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/cabrank/cabrank/internal/door"
	"github.com/cabrank/cabrank/internal/h2"
)

// claims adds the spans of all fields of a block that only Cabrank may set.
func claims(b *h2.Block, into []fieldSpan) []fieldSpan {
	for _, field := range [...]int{fieldUser, fieldSocket, fieldClient} {
		w, found := b.Watched(field)
		switch {
		case !found:
		case w.Count == 1:
			into = inOrder(into, fieldSpan{field, w})
		default: // the engine noted only the last one
			into = everyOne(b, field, into)
		}
	}
	return into
}

// everyOne adds the spans of all fields with this name.
func everyOne(b *h2.Block, field int, into []fieldSpan) []fieldSpan {
	wanted := watchedFields()[field]
	for rest := b.Enc; len(rest) > 0; {
		name, _, next := h2.NextField(rest)
		if string(name) == wanted {
			into = inOrder(into, fieldSpan{field, h2.Watched{Start: len(b.Enc) - len(rest), End: len(b.Enc) - len(next)}})
		}
		rest = next
	}
	return into
}

// unclaimed returns the fields of a block without those that only Cabrank may set.
func unclaimed(block []byte) []h2.Field {
	fields := make([]h2.Field, 0, 16)
	for name, value := range Fields(block).All() {
		if !door.IsClaim(name) {
			fields = append(fields, h2.Field{Name: name, Value: value})
		}
	}
	return fields
}

// addHeader returns the list with the header fields of a door's caller, without fields of
// its connection and fields that the door itself sets.
func addHeader(f Fields, h http.Header) Fields {
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
