package auth

import (
	"fmt"
	"log/slog"
	"slices"
)

const (
	// mostLeftOut is how many keys are named that are left out; the others are not told.
	mostLeftOut = 16

	// mostIDBytes is how much of the id of a key is told.
	mostIDBytes = 64
)

// leftOut is the keys of a set that count for nothing here, each in a line: its id and
// why, never the key.
type leftOut []string

func (l *leftOut) add(id string, why error) {
	if len(*l) < mostLeftOut {
		*l = append(*l, fmt.Sprintf("%q: %v", id[:min(len(id), mostIDBytes)], why))
	}
}

// tell logs the keys that are left out, unless those are what was told before. It
// returns what holds now.
func (l leftOut) tell(log *slog.Logger, before leftOut) leftOut {
	if len(l) > 0 && !slices.Equal(l, before) {
		log.Warn("keys of tokens are left out, tokens signed with them are refused", "keys", l)
	}
	return l
}
