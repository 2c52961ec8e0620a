package config

import (
	"errors"
	"strings"
)

// Balance is how a call gets its endpoint.
type Balance struct {
	Policy string // late_binding, random, round_robin, least_request, p2c, peak_ewma or ring_hash
	Key    string // of ring_hash: lower case name of a header, or ":authority"; what it hashes
}

// ringHash is the policy that needs a key.
const ringHash = "ring_hash"

// balance is the kind of *Balance fields.
type balance struct{}

func (balance) words() []string {
	return []string{"late_binding", "random", "round_robin", "least_request", "p2c", "peak_ewma"}
}

func (k balance) set(field any, text string) error {
	b := Balance{Policy: ringHash}
	name, isRing := strings.CutPrefix(text, ringHash)
	err := errors.New("ring_hash needs what it hashes, as in ring_hash:x-user")
	switch {
	case !isRing:
		err = oneOf(append(k.words(), ringHash)).set(&b.Policy, text)
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
		return b.Policy + ":" + b.Key
	}
	return field.(*Balance).Policy
}

func (k balance) allowed() string {
	return strings.Join(k.words(), ", ") + ", ring_hash:NAME of a header or metadata key in lower case, or of " + authorityField
}
