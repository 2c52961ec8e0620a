package config

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/cabrank/cabrank/internal/relay"
)

// CallerKey says by what callers are told apart.
//
// Shape: Name is the metadata key of relay.ByMetadata; only then it is set.
type CallerKey struct {
	By   relay.KeySource
	Name string
}

// String returns the key as it is written: "peer", "metadata:x-tenant".
func (k CallerKey) String() string {
	if k.Name != "" {
		return k.By.String() + metadataMark + k.Name
	}
	return k.By.String()
}

const (
	unixPeer       = "unix" // the address of all that come over unix sockets
	metadataMark   = ":"
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
	return err == nil || value == unixPeer || value == ""
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
	switch {
	case value == "" || strings.TrimSpace(value) != value:
		return "", fmt.Errorf("%s is empty or has spaces around it", quoteCaller(value))
	case !forms["ascii"].MatchString(value):
		return "", fmt.Errorf("%s has characters that are not ASCII", quoteCaller(value))
	case len(value) > maxCaller:
		return "", fmt.Errorf("%s is longer than %d characters", quoteCaller(value), maxCaller)
	}
	return value, nil
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
	if c.Fair.Key.By == relay.ByPeer && written != unixPeer {
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

// callerKey is the kind of *CallerKey fields.
func callerKey() value[CallerKey] {
	plain := words(relay.ByPeer, relay.ByAuthority, relay.ByNothing)
	return value[CallerKey]{
		read: func(key *CallerKey, text string) error {
			by, name, named := strings.Cut(text, metadataMark)
			if named && by == relay.ByMetadata.String() {
				*key = CallerKey{relay.ByMetadata, name}
				return checkCallerName(name)
			}
			*key = CallerKey{}
			if err := plain.read(&key.By, text); err != nil {
				return meantMetadata(text, err)
			}
			return nil
		},
		write: CallerKey.String,
		legal: plain.legal + ", metadata:NAME",
	}
}

// checkCallerName refuses names whose values cannot be written in a file, and
// the authority, which has a word of its own.
func checkCallerName(name string) error {
	if strings.HasSuffix(name, "-bin") {
		return fmt.Errorf("%s is binary metadata, whose values cannot be written down", quote(name))
	}
	if name == authorityField || name == "authority" || name == "host" {
		return fmt.Errorf("%s is not metadata; did you mean authority?", quote(name))
	}
	return checkHeaderName(name)
}

// meantMetadata says more about text that is no known word, where it is.
func meantMetadata(text string, unknown error) error {
	if text == relay.ByMetadata.String() {
		return errors.New("metadata needs a name, as in metadata:x-tenant")
	}
	if strings.HasSuffix(unknown.Error(), "?") || checkCallerName(text) != nil {
		return unknown
	}
	return fmt.Errorf("%w; did you mean metadata:%s?", unknown, text)
}

// checkHeaderName accepts a name that callers may send and that says something
// about the call: a token (RFC 9110 5.6.2) in lower case (RFC 9113 8.2.1) that
// belongs neither to gRPC nor to the connection (RFC 9113 8.2.2).
func checkHeaderName(name string) error {
	switch lower := strings.ToLower(name); {
	case strings.HasPrefix(name, ":"):
		return fmt.Errorf("%s is a pseudo header", quote(name))
	case !forms["token"].MatchString(name):
		return fmt.Errorf("%s is not the name of a header", quote(name))
	case lower != name:
		return fmt.Errorf("%s is not in lower case; did you mean %s?", quote(name), lower)
	case name == "host" || name == "authority":
		return fmt.Errorf("%s is not sent by callers of HTTP/2; did you mean %s?", quote(name), authorityField)
	case forms["protocol"].MatchString(name):
		return fmt.Errorf("%s belongs to the protocol, not to the call", quote(name))
	case len(name) > maxHeaderName:
		return fmt.Errorf("%s is longer than %d characters", quote(name), maxHeaderName)
	}
	return nil
}
