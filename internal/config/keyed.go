package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cabrank/cabrank/internal/callers"
)

// Keyed is one of some words, of which one takes a name: "peer", "metadata:x-tenant".
type Keyed[T fmt.Stringer] struct {
	By   T
	Name string // of the word that takes one
}

type (
	// Balance is how a call gets its endpoint. The name is that of a header in lower case, or
	// ":authority": what a ring hashes.
	Balance = Keyed[policy]
	// CallerKey says by what callers are told apart. The name is that of the metadata key.
	CallerKey = Keyed[callers.KeySource]
)

// String returns it as it is written.
func (k Keyed[T]) String() string {
	if k.Name != "" {
		return k.By.String() + ":" + k.Name
	}
	return k.By.String()
}

// keyed is the kind of *Keyed[T] fields: words, and one that takes a name. lacks is said of
// that one alone, and what is no word may be meant as a name if hinted.
func keyed[T fmt.Stringer](plain value[T], takes T, lacks, legal string, check func(name string) error, hinted bool) value[Keyed[T]] {
	return value[Keyed[T]]{
		read: func(into *Keyed[T], text string) error {
			by, name, named := strings.Cut(text, ":")
			*into = Keyed[T]{Name: name}
			if strings.EqualFold(by, takes.String()) {
				if into.By = takes; !named {
					return errors.New(lacks)
				}
				return check(name)
			}
			err := plain.read(&into.By, text)
			if err != nil && hinted && !strings.HasSuffix(err.Error(), "?") && check(text) == nil {
				return fmt.Errorf("%w; did you mean %s:%s?", err, takes, text)
			}
			return err
		},
		write: Keyed[T].String,
		legal: legal,
	}
}

// policy says how a call gets its endpoint.
type policy uint8

const (
	lateBinding policy = iota // the best that has a free slot
	ringHash                  // the same one for the same value of a field, while it has a free slot
)

func (p policy) String() string { return [...]string{"late_binding", "ring_hash"}[p] }

func balance() value[Balance] {
	legal := "late_binding, ring_hash:NAME of a header or metadata key in lower case, or of " + authorityField
	plain := words(lateBinding, ringHash)
	read := plain.read
	plain.read = func(p *policy, text string) error {
		if slices.Contains([]string{"random", "round_robin", "least_request", "p2c", "peak_ewma"}, strings.ToLower(text)) {
			return fmt.Errorf("%q is gone: it let calls wait for one worker while others were idle; leave balance out", text)
		}
		return read(p, text)
	}
	return keyed(plain, ringHash, "ring_hash needs what it hashes, as in ring_hash:x-user", legal, func(name string) error {
		if name == authorityField {
			return nil
		}
		return checkHeaderName(name)
	}, false)
}

func callerKey() value[CallerKey] {
	plain := words(callers.ByPeer, callers.ByAuthority, callers.ByNothing)
	return keyed(plain, callers.ByMetadata, "metadata needs a name, as in metadata:x-tenant", plain.legal+", metadata:NAME", checkCallerName, true)
}
