package socket

import (
	"net/http"
	"strings"
)

// allowedName is the header in which a client announces the kinds of its requests. It may
// also be a parameter of the query, for browsers cannot set headers.
const allowedName = "Juggler-Allowed-Messages"

// allowed is a set of kinds of requests.
type allowed uint8

// has reports whether a kind is allowed. Kinds about calls go with Call; a token and a
// ping are always allowed. Unknown kinds are refused elsewhere.
func (a allowed) has(k Kind) bool {
	switch k { //nolint:exhaustive // the others are announced by their own names
	case Cancel, Credit:
		k = Call
	case Token, Ping, unknownKind:
		return true
	}
	return k >= 0 && k < 8 && a&(1<<k) != 0
}

func everything() (a allowed) {
	for _, k := range requestKinds() {
		a |= 1 << k
	}
	return a
}

// allowedBy reads the announcement of a client; the header comes first.
func allowedBy(r *http.Request) allowed {
	if list := r.Header.Get(allowedName); list != "" {
		return parseAllowed(list)
	}
	for name, values := range r.URL.Query() {
		if strings.EqualFold(name, allowedName) {
			return parseAllowed(strings.Join(values, ","))
		}
	}
	return everything()
}

// parseAllowed reads names of kinds with commas between. A list without any known name,
// such as a star, allows everything: unknown names must not lock a client out.
func parseAllowed(list string) (a allowed) {
	for word := range strings.SplitSeq(list, ",") {
		word = strings.ToLower(strings.TrimSpace(word))
		for _, k := range requestKinds() {
			if word == k.String() {
				a |= 1 << k
			}
		}
	}
	if a == 0 {
		return everything()
	}
	return a
}
