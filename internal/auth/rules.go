package auth

import (
	"slices"
	"strings"
)

// Rules are the claims that say what a caller may do. A list that is missing (nil) is
// that of the defaults, and nothing if these have none either.
type Rules struct {
	// Call, Publish and Subscribe are globs of URIs and channels (see broker.Matches).
	Call      []string `json:"call"`
	Publish   []string `json:"publish"`
	Subscribe []string `json:"subscribe"`
	// Channels are those that the socket is subscribed to when it opens.
	Channels []string `json:"channels"`
}

// userMark stands for the user in the defaults.
const userMark = "{user}"

// or takes the lists that are missing from the defaults, for a user.
func (r Rules) or(defaults Rules, user string) Rules {
	return Rules{
		Call:      either(r.Call, defaults.Call, user, quoteGlob),
		Publish:   either(r.Publish, defaults.Publish, user, quoteGlob),
		Subscribe: either(r.Subscribe, defaults.Subscribe, user, quoteGlob),
		Channels:  either(r.Channels, defaults.Channels, user, func(s string) string { return s }),
	}
}

// either returns the own list, or the default one with the user in it. Entries for a user
// are not for who is none.
func either(own, defaults []string, user string, quote func(string) string) []string {
	isFor := func(entry string) bool { return strings.Contains(entry, userMark) }
	if own != nil || !slices.ContainsFunc(defaults, isFor) {
		if own == nil {
			return defaults
		}
		return own
	}
	var list []string
	for _, entry := range defaults {
		if user != "" || !isFor(entry) {
			list = append(list, strings.ReplaceAll(entry, userMark, quote(user)))
		}
	}
	return list
}

// quoteGlob makes a glob that matches the text alone.
func quoteGlob(text string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(text)
}

func (r Rules) identity(user string) *Identity {
	return &Identity{User: user, Call: r.Call, Publish: r.Publish, Subscribe: r.Subscribe, Channels: r.Channels}
}
