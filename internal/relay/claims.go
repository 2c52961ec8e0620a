package relay

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/cabrank/cabrank/internal/door"
	"github.com/cabrank/cabrank/internal/h2"
)

// claims adds all fields of a block to its cuts that a caller has no say in.
func claims(b *h2.Block, into []cut) []cut {
	for _, field := range [...]int{fieldUser, fieldSocket, fieldClient} {
		w, found := b.Watched(field)
		switch {
		case !found:
		case w.Count == 1:
			into = inOrder(into, cut{field, w})
		default: // only the last one was noted
			into = everyOne(b, field, into)
		}
	}
	return into
}

// everyOne adds all fields of a name.
func everyOne(b *h2.Block, field int, into []cut) []cut {
	wanted := watchedFields()[field]
	for rest := b.Enc; len(rest) > 0; {
		name, _, next := h2.NextField(rest)
		if string(name) == wanted {
			into = inOrder(into, cut{field, h2.Watched{Start: len(b.Enc) - len(rest), End: len(b.Enc) - len(next)}})
		}
		rest = next
	}
	return into
}

// unclaimed returns the fields of a block but for those that a caller has no say in.
func unclaimed(block []byte) []h2.Field {
	fields := make([]h2.Field, 0, 16)
	for name, value := range Fields(block).All() {
		if !door.IsClaim(name) {
			fields = append(fields, h2.Field{Name: name, Value: value})
		}
	}
	return fields
}

// addHeader returns the list with what the caller of a door has sent, but for what is of
// its connection or for the door to say.
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

// ofDoor reports whether a field is of a connection (RFC 9110 7.6.1), or says what a door
// makes of a request, or who makes it.
func ofDoor(name string) bool {
	switch name {
	case "connection", "keep-alive", "proxy-connection", "proxy-authorization", "te", "trailer", "transfer-encoding", "upgrade",
		"host", "content-length", "expect":
		return true
	}
	return strings.HasPrefix(name, "grpc-") || strings.HasPrefix(name, "connect-") || door.IsClaim(name)
}
