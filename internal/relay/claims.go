package relay

import (
	"github.com/cabrank/cabrank/internal/h2"
)

// Fields by which workers are told who makes a call. No caller over a socket has a say in
// them: they are taken out of its requests.
const (
	userName   = "x-cabrank-user"
	socketName = "x-cabrank-socket"
	clientName = "x-cabrank-client"
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
			into = everyClaim(b, field, into)
		}
	}
	return into
}

func everyClaim(b *h2.Block, field int, into []cut) []cut {
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
