package socket

import (
	"github.com/cabrank/cabrank/internal/auth"
	"github.com/cabrank/cabrank/internal/broker"
)

// Auth verifies tokens.
//
// Concurrency: it is called from anywhere, and may take some seconds.
type Auth interface {
	// Verify returns the identity in a token, which is empty for a client without a
	// token. An error is one line for the client, with nothing of the token in it.
	Verify(token string) (*auth.Identity, error)
}

// identity is the identity of a socket.
type identity struct {
	*auth.Identity

	awaited bool // the token comes by a message; until then nothing is allowed
}

// errDenied refuses requests that the rules of an identity do not allow.
var errDenied error = &broker.CodeError{Code: 403, Text: "not allowed"}

// refuses checks a request against the rules. Without an identity all is allowed.
func (id *identity) refuses(r *request) error {
	if id == nil {
		return nil
	}
	allowed := false
	switch r.kind { //nolint:exhaustive // the others come from the server, or are about calls that were allowed
	case Unsub, Token: // they need no right
		allowed = true
	case Call:
		allowed = id.MayCall(r.uri)
	case Pub:
		allowed = id.MayPublish(r.channel)
	case Sub:
		allowed = id.MaySubscribe(broker.Topic{Name: r.channel, Pattern: r.pattern})
	}
	switch {
	case allowed:
		return nil
	case id.awaited:
		return errFirst
	}
	return errDenied
}
