package push

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"strings"
	"sync/atomic"
)

// atOnce bounds the requests that are read or wait for the broker. Further ones wait for
// their turn.
const atOnce = 64

const noToken = "want Authorization: Bearer TOKEN, with the token of this server"

// gate lets requests in: those with the token, so many at a time.
//
// Concurrency: every method may be called from anywhere.
type gate struct {
	token *[sha256.Size]byte // its hash; nil: none is needed
	turns chan struct{}
	calls atomic.Int64 // over gRPC, those that wait for a turn included
}

func newGate(token string) *gate {
	g := &gate{turns: make(chan struct{}, atOnce)}
	if token != "" {
		hash := sha256.Sum256([]byte(token))
		g.token = &hash
	}
	return g
}

// opens reports whether a request has the token. It takes the same time for every wrong
// one.
func (g *gate) opens(authorization string) bool {
	if g.token == nil {
		return true
	}
	scheme, token, _ := strings.Cut(authorization, " ")
	hash := sha256.Sum256([]byte(strings.TrimSpace(token)))
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(hash[:], g.token[:]) == 1
}

// enter waits for a turn, which leave gives back. Without one ctx has ended.
func (g *gate) enter(ctx context.Context) bool {
	select {
	case g.turns <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (g *gate) leave() { <-g.turns }
