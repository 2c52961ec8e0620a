package config

import (
	"fmt"
	"strings"
)

// maxHeaderName bounds the names of headers, in bytes.
const maxHeaderName = 100

// authorityField is the one pseudo header that says who calls whom.
const authorityField = ":authority"

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
