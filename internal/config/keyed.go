package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cabrank/cabrank/internal/callers"
)

const ring = "ring_hash" // the policy that takes a name

// balance is the kind of Balance.
func balance() text {
	clean := func(text string) (policy string, err error) {
		policy, _, named := strings.Cut(strings.ToLower(text), ":")
		if policy != ring {
			if slices.Contains([]string{"random", "round_robin", "least_request", "p2c", "peak_ewma"}, policy) {
				return "", fmt.Errorf("%q is gone: it let calls wait for one worker while others were idle; leave balance out", text)
			}
			err = plain{`oneof:"late_binding|` + ring + `"`}.set(&policy, text)
			return policy, err
		}
		if !named {
			return "", errors.New(ring + " needs what it hashes, as in ring_hash:x-user")
		}
		key := text[len(ring)+1:]
		if key != authorityField {
			err = checkHeaderName(key)
		}
		return ring + ":" + key, err
	}
	return text{clean: clean, legal: "late_binding, ring_hash:NAME of a header or metadata key in lower case, or of " + authorityField}
}

// BalanceKey is the name of the header that ring_hash hashes, or ":authority"; "" is
// late_binding.
func (c *Config) BalanceKey() string {
	_, key, _ := strings.Cut(c.Balance, ":")
	return key
}

// CallerKey says by what callers are told apart. The name is that of the metadata key.
type CallerKey struct {
	By   callers.KeySource
	Name string
}

// String returns it as it is written.
func (k CallerKey) String() string { return strings.TrimSuffix(k.By.String()+":"+k.Name, ":") }

// callerKey is the kind of CallerKey. What is no word may be meant as a name.
func callerKey() value[CallerKey] {
	plain, metadata := words(callers.ByPeer, callers.ByAuthority, callers.ByNothing), callers.ByMetadata.String()
	read := func(into *CallerKey, text string) error {
		by, name, named := strings.Cut(text, ":")
		if *into = (CallerKey{}); strings.EqualFold(by, metadata) {
			*into = CallerKey{callers.ByMetadata, name}
			if !named {
				return errors.New(metadata + " needs a name, as in metadata:x-tenant")
			}
			return checkCallerName(name)
		}
		err := plain.read(&into.By, text)
		if err != nil && !strings.HasSuffix(err.Error(), "?") && checkCallerName(text) == nil {
			return fmt.Errorf("%w; did you mean %s:%s?", err, metadata, text)
		}
		return err
	}
	return value[CallerKey]{read: read, write: CallerKey.String, legal: plain.legal + ", metadata:NAME"}
}
