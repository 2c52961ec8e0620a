package h2

import "bytes"

// The grammar of the three pseudo-header fields that say what a request is for.
// Each octet is looked up in the table that all values pass anyway (octets), so
// that the rules cost a few comparisons for a field that is spelled out, and
// nothing for one that is indexed or a block that is remembered.
//
// Source: RFC 9113 section 8.3.1, RFC 3986 sections 3.1, 3.2, 3.3 and 3.4.

const (
	alphanumeric = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	unreserved   = alphanumeric + "-._~"
	subDelims    = "!$&'()*+,;="

	schemeOctets    = alphanumeric + "+-."
	authorityOctets = unreserved + subDelims + "%:[]"
	// targetOctets are those of a path and a query, and the octets that RFC 3986
	// leaves out but browsers write as they are, above all the brackets in
	// "?filter[name]=x". What may end a path for one reader and not for another
	// is not among them: space, control characters, '"', '<', '>', and "#", which
	// begins a fragment.
	targetOctets = unreserved + subDelims + "%:@/?" + "[]{}|\\^`"
)

// checkTarget judges the value of :scheme, :authority or :path; all is the
// classes of its octets together.
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

// isAuthority reports whether octets that may all be in one make a host with at
// most one port: "name", "192.0.2.1:80", "[2001:db8::1]:80". There is no user in
// front of it (RFC 9113 8.3.1). An empty one passes, as if it were not there.
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

// hostFault judges the host field of a request, for two receivers may go by one of
// the two each: it names what :authority names. Without that, or with an empty one,
// it stands alone (RFC 9113 8.3.1).
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

// sameAuthority compares without regard to case, and to the port if one of the two
// has none and the other that of http or https: who ends TLS in front may have
// left either.
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
