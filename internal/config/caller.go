package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/cabrank/cabrank/internal/callers"
)

const (
	authorityField = ":authority" // the one pseudo header that says who calls whom
	callersLegal   = "values of fair.key"

	// These bound the value of a key that is written in a file, and the name of a header, in bytes.
	maxCaller     = 200
	maxHeaderName = 100
)

// quoteCaller returns a caller for an error line. One that is no address may be a
// secret, such as an API key (fair.key: metadata), and is not told.
func quoteCaller(value string) string {
	if callerIsTold(value) {
		return quote(value)
	}
	return hidden
}

func callerIsTold(value string) bool {
	_, err := netip.ParseAddr(value)
	return err == nil || value == callers.UnixPeer || value == ""
}

// callerPath names the entry of a caller, as far as that may be told.
func callerPath(key, value string) string {
	if callerIsTold(value) {
		return entryPath(key, value)
	}
	return key + "[" + hidden + "]"
}

// cleanCaller accepts what a header can hold (gRPC over HTTP/2, ASCII-Value).
func cleanCaller(value string) (string, error) {
	return value, wrong(quoteCaller(value),
		flaw{value == "" || strings.TrimSpace(value) != value, "is empty or has spaces around it"},
		flaw{!forms["ascii"].MatchString(value), "has characters that are not ASCII"},
		flaw{len(value) > maxCaller, fmt.Sprintf("is longer than %d characters", maxCaller)})
}

// tidyCallers brings the values of fair.key into the form that calls have, and
// reports those that no call can have and those that are one.
func (c *Config) tidyCallers() (faults Faults) {
	tidy, owners := map[string]float64{}, map[string]string{}
	for _, written := range slices.Sorted(maps.Keys(c.Fair.Weights)) {
		path := entryPath("fair.weights", written)
		value, what, allowed := c.tidyCaller(owners, "", written)
		if what != "" {
			faults = append(faults, c.origins[path].fault(callerPath("fair.weights", written), what, allowed))
		}
		tidy[value] = c.Fair.Weights[written]
		c.origins[entryPath("fair.weights", value)] = c.origins[path] // under its tidy name, too
	}
	c.Fair.Weights = tidy
	clear(owners)
	c.Lanes = slices.Clone(c.Lanes) // another configuration may have these, too
	for i := range c.Lanes {
		lane := &c.Lanes[i]
		lane.Keys = slices.Clone(lane.Keys)
		for i, written := range lane.Keys {
			value, what, allowed := c.tidyCaller(owners, lane.Name, written)
			c.refuseInto(&faults)(what != "", entryPath("lanes", lane.Name)+".keys", what, allowed)
			lane.Keys[i] = value
		}
	}
	return faults
}

// tidyCaller returns the form that calls have of a value that a lane may own, of addresses
// the shortest, without a zone; and what is wrong with it.
func (c *Config) tidyCaller(owners map[string]string, lane, written string) (value, what, allowed string) {
	value = written
	if c.Fair.Key.By == callers.ByPeer && written != callers.UnixPeer {
		address, err := netip.ParseAddr(written)
		if err != nil {
			allowed = fmt.Sprintf("addresses, unix, or another fair.key (%s)", c.origins["fair.key"])
			return "", quoteCaller(written) + " is not an address, and callers are told apart by theirs", allowed
		}
		value = address.Unmap().WithZone("").String()
	}
	as := ""
	if value != written {
		as = ", as " + value
	}
	if what, allowed = onlyOnce(owners, value, lane, as); what != "" {
		what = quoteCaller(written) + what
	}
	return value, what, allowed
}

// checkCallerName refuses names whose values cannot be written in a file, and
// the authority, which has a word of its own.
func checkCallerName(name string) error {
	authority := name == authorityField || name == "authority" || name == "host"
	return cmp.Or(wrong(quote(name),
		flaw{strings.HasSuffix(name, "-bin"), "is binary metadata, whose values cannot be written down"},
		flaw{authority, "is not metadata; did you mean authority?"}), checkHeaderName(name))
}

// checkHeaderName accepts a name that callers may send and that says something
// about the call: a token (RFC 9110 5.6.2) in lower case (RFC 9113 8.2.1) that
// belongs neither to gRPC nor to the connection (RFC 9113 8.2.2).
func checkHeaderName(name string) error {
	lower := strings.ToLower(name)
	return wrong(quote(name),
		flaw{strings.HasPrefix(name, ":"), "is a pseudo header"},
		flaw{!forms["token"].MatchString(name), "is not the name of a header"},
		flaw{lower != name, "is not in lower case; did you mean " + lower + "?"},
		flaw{name == "host" || name == "authority", "is not sent by callers of HTTP/2; did you mean " + authorityField + "?"},
		flaw{forms["protocol"].MatchString(name), "belongs to the protocol, not to the call"},
		flaw{len(name) > maxHeaderName, fmt.Sprintf("is longer than %d characters", maxHeaderName)})
}

const ring = "ring_hash" // the policy that takes a name

// cleanBalance accepts a policy.
func cleanBalance(text string) (policy string, err error) {
	policy, _, named := strings.Cut(strings.ToLower(text), ":")
	switch {
	case slices.Contains([]string{"random", "round_robin", "least_request", "p2c", "peak_ewma"}, policy):
		return "", fmt.Errorf("%q is gone: it let calls wait for one worker while others were idle; leave balance out", text)
	case policy != ring:
		err = kind{tag: `oneof:"late_binding|` + ring + `"`}.set(&policy, text)
		return policy, err
	case !named:
		return "", errors.New(ring + " needs what it hashes, as in ring_hash:x-user")
	}
	key := text[len(ring)+1:]
	if key != authorityField {
		err = checkHeaderName(key)
	}
	return ring + ":" + key, err
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
func callerKey() kind {
	plain, metadata := words(callers.ByPeer, callers.ByAuthority, callers.ByNothing), callers.ByMetadata.String()
	return kind{legal: plain.legal + ", metadata:NAME", read: func(into any, text string) error {
		key := into.(*CallerKey)
		by, name, named := strings.Cut(text, ":")
		if *key = (CallerKey{}); strings.EqualFold(by, metadata) {
			*key = CallerKey{callers.ByMetadata, name}
			if !named {
				return errors.New(metadata + " needs a name, as in metadata:x-tenant")
			}
			return checkCallerName(name)
		}
		err := plain.read(&key.By, text)
		if err != nil && !strings.HasSuffix(err.Error(), "?") && checkCallerName(text) == nil {
			return fmt.Errorf("%w; did you mean %s:%s?", err, metadata, text)
		}
		return err
	}}
}
