package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/relay"
)

// Keyed is one of some words, of which one takes a name: "peer", "metadata:x-tenant".
type Keyed[T fmt.Stringer] struct {
	By   T
	Name string // of the word that takes one
}

type (
	// Balance is how a call gets its endpoint. The name is that of a header in lower case, or
	// ":authority": what a ring hashes.
	Balance = Keyed[rank.Balance]
	// CallerKey says by what callers are told apart. The name is that of the metadata key.
	CallerKey = Keyed[relay.KeySource]
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

func balance() value[Balance] {
	plain := []rank.Balance{rank.LateBinding, rank.Random, rank.RoundRobin, rank.LeastRequest, rank.P2C, rank.PeakEWMA}
	legal := words(plain...).legal + ", ring_hash:NAME of a header or metadata key in lower case, or of " + authorityField
	return keyed(words(append(plain, rank.RingHash)...), rank.RingHash, "ring_hash needs what it hashes, as in ring_hash:x-user", legal, func(name string) error {
		if name == authorityField {
			return nil
		}
		return checkHeaderName(name)
	}, false)
}

func callerKey() value[CallerKey] {
	plain := words(relay.ByPeer, relay.ByAuthority, relay.ByNothing)
	return keyed(plain, relay.ByMetadata, "metadata needs a name, as in metadata:x-tenant", plain.legal+", metadata:NAME", checkCallerName, true)
}
