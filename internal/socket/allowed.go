package socket

import (
	"net/http"
	"strings"
)

// allowedName is the header, or the parameter of the query for browsers, which cannot
// set headers, in which a client says what it will send.
const allowedName = "Juggler-Allowed-Messages"

// allowed is a set of kinds of requests.
type allowed uint8

// has knows that what is about a call is of Call, and that anybody may show a token and
// ping. What is unknown is for others to refuse.
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

// allowedBy reads what a client says; the header comes first.
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

// parseAllowed reads names of kinds with commas between. A list without any known name, such
// as a star, is everything: what is unknown must not lock a client out.
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
