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
type balance struct{}

// plain are the policies without a key.
func (balance) plain() words[rank.Balance] {
	return words[rank.Balance]{rank.LateBinding, rank.Random, rank.RoundRobin, rank.LeastRequest, rank.P2C, rank.PeakEWMA}
}

func (k balance) set(field any, text string) error {
	b := Balance{Policy: rank.RingHash}
	name, isRing := strings.CutPrefix(text, rank.RingHash.String())
	err := errors.New("ring_hash needs what it hashes, as in ring_hash:x-user")
	switch {
	case !isRing:
		err = append(k.plain(), rank.RingHash).set(&b.Policy, text)
	case strings.HasPrefix(name, ":"):
		if b.Key = name[1:]; b.Key == authorityField {
			err = nil
		} else {
			err = checkHeaderName(b.Key)
		}
	}
	if err == nil {
		*field.(*Balance) = b
	}
	return err
}

func (k balance) show(field any) string {
	if b := field.(*Balance); b.Key != "" {
		return b.Policy.String() + ":" + b.Key
	}
	return field.(*Balance).Policy.String()
}

func (k balance) allowed() string {
	return k.plain().allowed() + ", ring_hash:NAME of a header or metadata key in lower case, or of " + authorityField
}
