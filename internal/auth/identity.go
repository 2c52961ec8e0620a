package auth

import (
	"strings"
	"time"

	"github.com/cabrank/cabrank/internal/broker"
)

// Identity is who a caller is, and what it may do. A name is allowed that matches one of
// the globs of its kind (see broker.Matches); without any, none is.
//
// Concurrency: nobody changes it.
type Identity struct {
	// User is who the caller has proved to be; "" if it has shown no token.
	User string
	// Expires is when it counts no more; zero: it does not end.
	Expires time.Time
	// Call are URIs that may be called.
	Call []string
	// Publish are channels that may be published in.
	Publish []string
	// Subscribe are channels that may be subscribed to.
	Subscribe []string
	// Channels are those to which a socket is subscribed when it opens.
	Channels []string
}

// MayCall reports whether a URI may be called.
func (id *Identity) MayCall(uri string) bool { return matchesAny(id.Call, uri) }

// MayPublish reports whether events may be published in a channel.
func (id *Identity) MayPublish(channel string) bool { return matchesAny(id.Publish, channel) }

// MaySubscribe says whether all that comes by a topic may be read: of a pattern that is
// known if it stands in the rules itself, or begins with what stands before the star that
// ends one of them.
func (id *Identity) MaySubscribe(topic broker.Topic) bool {
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

// Bearer returns the token of an authorization field; "" if it has none.
func Bearer(authorization string) string {
	if scheme, token, ok := strings.Cut(authorization, " "); ok && strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(token)
	}
	return ""
}
