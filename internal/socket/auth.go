package socket

import (
	"strings"
	"time"

	"github.com/cabrank/cabrank/internal/broker"
)

// Auth knows who comes with a token.
//
// Concurrency: it is called from anywhere, and may take some seconds.
type Auth interface {
	// Verify returns what a token says. The empty one is that of a client that has
	// none. An error is one line for the client, with nothing of the token in it.
	Verify(token string) (*Identity, error)
}

// Identity is who a socket is, and what it may do. A name is allowed that matches one of
// the globs of its kind (see broker.Matches); without any, none is.
//
// Concurrency: nobody changes it.
type Identity struct {
	// User is who the client has proved to be; "" if it has shown no token.
	User string
	// Expires is when the socket ends; zero: it does not for that.
	Expires time.Time
	// Call are URIs that may be called.
	Call []string
	// Publish are channels that may be published in.
	Publish []string
	// Subscribe are channels that may be subscribed to.
	Subscribe []string
	// Channels are those to which the socket is subscribed when it opens.
	Channels []string

	awaited bool // the token comes by a message; until then nothing is allowed
}

// errDenied refuses what the rules of an identity do not allow.
var errDenied error = &broker.CodeError{Code: 403, Text: "not allowed"}

// refuses holds a request against the rules. Without an identity all is allowed.
func (id *Identity) refuses(r *request) error {
	if id == nil {
		return nil
	}
	allowed := false
	switch r.kind { //nolint:exhaustive // the others come from the server, or are about calls that were allowed
	case Unsub, Token: // which take nothing
		allowed = true
	case Call:
		allowed = matchesAny(id.Call, r.uri)
	case Pub:
		allowed = matchesAny(id.Publish, r.channel)
	case Sub:
		allowed = id.maySubscribe(broker.Topic{Name: r.channel, Pattern: r.pattern})
	}
	switch {
	case allowed:
		return nil
	case id.awaited:
		return errFirst
	}
	return errDenied
}

// maySubscribe says whether all that comes by a topic may be read: of a pattern that is
// known if it stands in the rules itself, or begins with what stands before the star that
// ends one of them.
func (id *Identity) maySubscribe(topic broker.Topic) bool {
	if !topic.Pattern {
		return matchesAny(id.Subscribe, topic.Name)
	}
	for _, glob := range id.Subscribe {
		before, wide := strings.CutSuffix(glob, "*")
		if topic.Name == glob || wide && !strings.ContainsAny(before, `*?[\`) && strings.HasPrefix(topic.Name, before) {
			return true
		}
	}
	return false
}

func matchesAny(globs []string, name string) bool {
	for _, glob := range globs {
		if glob == "*" || broker.Matches(glob, name) {
			return true
		}
	}
	return false
}
