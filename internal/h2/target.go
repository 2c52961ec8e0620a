package h2

import "bytes"

// The grammar of the three pseudo-header fields with the target of a request. Each octet
// is looked up in the table that all values pass anyway (octets), so that the rules cost
// a few comparisons for a literal field, and nothing for an indexed one or a remembered
// block.
//
// Source: RFC 9113 section 8.3.1, RFC 3986 sections 3.1, 3.2, 3.3 and 3.4.

const (
	alphanumeric = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	unreserved   = alphanumeric + "-._~"
	subDelims    = "!$&'()*+,;="

	schemeOctets    = alphanumeric + "+-."
	authorityOctets = unreserved + subDelims + "%:[]"
	// targetOctets are the octets of a path and a query, and those that RFC 3986
	// leaves out but browsers write as they are, above all the brackets in
	// "?filter[name]=x". Octets that end a path for some readers are not among them:
	// space, control characters, '"', '<', '>', and "#", which begins a fragment.
	targetOctets = unreserved + subDelims + "%:@/?" + "[]{}|\\^`"
)

// checkTarget checks the value of :scheme, :authority or :path; all is the union of the
// classes of its octets.
func (r role) checkTarget(value []byte, all uint8) MalformedError {
	switch {
	case r == roleScheme && len(value) == 0:
		return MalformedSchemeEmpty
	case r == roleScheme && (all&octetNoScheme != 0 || !isLetter(value[0])):
		return MalformedScheme
	case r == roleAuthority && (all&octetNoAuthority != 0 || !isAuthority(value)):
		return MalformedAuthority
	case r == rolePath && len(value) == 0:
		return MalformedPathEmpty
	case r == rolePath && all&octetNoTarget != 0:
		return MalformedPathChar
	case r == rolePath && value[0] != '/' && string(value) != "*":
		return MalformedPath
	}
	return 0
}

// isAuthority reports whether s, whose octets are all allowed in an authority, is a host
// with at most one port: "name", "192.0.2.1:80", "[2001:db8::1]:80". It must not have a
// user (RFC 9113 8.3.1). An empty one passes, as if the field were missing.
func isAuthority(s []byte) bool {
	port := bytes.IndexByte(s, ':')
	if len(s) > 0 && s[0] == '[' {
		end := bytes.IndexByte(s, ']')
		if end < 0 {
			return false
		}
		s = s[end+1:]
		if len(s) == 0 {
			return true
		}
		port = 0
	}
	switch {
	case bytes.ContainsAny(s, "[]"):
		return false
	case port < 0:
		return true
	}
	rest := s[port+1:]
	return s[port] == ':' && (len(rest) == 0 || isDigits(rest))
}

const (
	authorityName = ":authority"
	hostName      = "host"
)

// hostFault checks the host field of a request. It must be the same as :authority, for one
// receiver may use the one and another the other. Without :authority, or with an empty
// one, any host is allowed (RFC 9113 8.3.1).
func (b *Block) hostFault() MalformedError {
	host, _ := b.Watched(int(b.watch.host))
	authority, found := b.Watched(int(b.watch.authority))
	switch {
	case host.Count > 1:
		return MalformedHost
	case !found || len(authority.Value) == 0 || isAuthority(host.Value) && sameAuthority(host.Value, authority.Value):
		return 0
	}
	return MalformedHost
}

// sameAuthority compares without regard to case. A missing port equals the default port of
// http and of https: a proxy that ends TLS may have left either.
// Source: RFC 3986 sections 6.2.2.1 and 6.2.3.
func sameAuthority(a, b []byte) bool {
	if len(a) < len(b) {
		a, b = b, a
	}
	for i, c := range b {
		if lower(a[i]) != lower(c) {
			return false
		}
	}
	switch string(a[len(b):]) {
	case "", ":", ":80", ":443":
		return true
	}
	return false
}

// lower maps the letters of ASCII to lower case.
func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c | 0x20
	}
	return c
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
