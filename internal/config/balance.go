package config

import (
	"errors"
	"strings"

	"github.com/cabrank/cabrank/internal/rank"
)

// Balance is how a call gets its endpoint.
type Balance struct {
	Policy rank.Balance
	Key    string // of ring_hash: lower case name of a header, or ":authority"; what it hashes
}

// balance is the kind of *Balance fields.
func balance() value[Balance] {
	plain := []rank.Balance{rank.LateBinding, rank.Random, rank.RoundRobin, rank.LeastRequest, rank.P2C, rank.PeakEWMA}
	ring := rank.RingHash.String()
	return value[Balance]{
		read: func(b *Balance, text string) error {
			name, isRing := strings.CutPrefix(text, ring)
			key, keyed := strings.CutPrefix(name, ":")
			switch {
			case !isRing:
				b.Key = ""
				return words(append(plain, rank.RingHash)...).read(&b.Policy, text)
			case !keyed:
				return errors.New("ring_hash needs what it hashes, as in ring_hash:x-user")
			}
			*b = Balance{rank.RingHash, key}
			if key == authorityField {
				return nil
			}
			return checkHeaderName(key)
		},
		write: func(b Balance) string {
			if b.Key != "" {
				return ring + ":" + b.Key
			}
			return b.Policy.String()
		},
		legal: words(plain...).legal + ", ring_hash:NAME of a header or metadata key in lower case, or of " + authorityField,
	}
}
