package door

import (
	"net/url"
	"strings"
)

// IsOwnOrigin reports whether the page that an origin names is of the host that a request
// names, which may lack the port that both have anyway. Source: RFC 6454, section 5.
func IsOwnOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false
	}
	return strings.EqualFold(withoutDefault(u.Host), withoutDefault(host))
}

// withoutDefault cuts the ports off that https and http have. Whether a proxy has ended TLS
// is not known here.
func withoutDefault(host string) string {
	return strings.TrimSuffix(strings.TrimSuffix(host, ":443"), ":80")
}

// Origins are those of pages that may call: exact, or with *. in front of a domain for all
// hosts below it ("https://*.shop.example").
type Origins []string

// Has reports whether an origin is one of them. null never is.
func (o Origins) Has(origin string) bool {
	for _, known := range o {
		scheme, domain, wild := strings.Cut(known, "*.")
		switch {
		case !wild && known == origin && origin != "null":
			return true
		case wild:
			host, ok := strings.CutPrefix(origin, scheme)
			if sub, below := strings.CutSuffix(host, "."+domain); ok && below && sub != "" {
				return true
			}
		}
	}
	return false
}
