package door

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// A page is of its own host, whatever names the port that it has anyway.
func TestOwnOrigins(t *testing.T) {
	for _, tc := range []struct {
		origin, host string
		want         bool
	}{
		{"https://shop.example", "shop.example", true},
		{"https://shop.example", "shop.example:443", true},
		{"https://Shop.example:443", "shop.example", true},
		{"http://shop.example", "shop.example:80", true},
		{"https://shop.example", "shop.example:80", true}, // behind a proxy that ends TLS
		{"http://shop.example:8080", "shop.example:8080", true},
		{"http://shop.example:8080", "shop.example", false},
		{"https://shop.example", "shop.example:8443", false},
		{"https://shop.example", "127.0.0.1:9000", false},
		{"https://shop.example.evil", "shop.example", false},
		{"http://[::1]:443", "[::1]", true},
		{"null", "shop.example", false},
		{"null", "", false},
		{"https://%zz", "shop.example", false},
	} {
		testkit.Equal(t, IsOwnOrigin(tc.origin, tc.host), tc.want, "a page of %s at %s", tc.origin, tc.host)
	}
}

// Origins are compared letter by letter but for what is below a domain.
func TestOrigins(t *testing.T) {
	known := Origins{"https://shop.example", "https://*.cafe.example", "http://localhost:3000", "null"}
	for origin, want := range map[string]bool{
		"https://shop.example":        true,
		"https://shop.example:443":    false,
		"http://shop.example":         false,
		"https://www.shop.example":    false,
		"https://cafe.example":        false,
		"https://a.cafe.example":      true,
		"https://a.b.cafe.example":    true,
		"https://.cafe.example":       false,
		"https://evilcafe.example":    false,
		"https://a.cafe.example.evil": false,
		"http://a.cafe.example":       false,
		"https://a.cafe.example:8443": false,
		"http://localhost:3000":       true,
		"null":                        false,
		"":                            false,
	} {
		testkit.Equal(t, known.Has(origin), want, "%q", origin)
	}
}

// Who an x-forwarded-for is of: the last entry that is no proxy, in each form that it has.
func TestForwardedCaller(t *testing.T) {
	proxies := Proxies{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("192.0.2.1/32")}
	many := strings.Repeat(", 10.0.0.1", mostForwarded-1)
	for name, c := range map[string]struct{ list, caller, before string }{
		"one":                       {"203.0.113.7", "203.0.113.7", ""},
		"a proxy behind it":         {"203.0.113.7, 10.1.2.3", "203.0.113.7", ""},
		"proxies behind it":         {"203.0.113.7,10.1.2.3 , 2001:db8::9,192.0.2.1", "203.0.113.7", ""},
		"what it says of itself":    {"1.1.1.1, 10.9.9.9, 203.0.113.7, 10.1.2.3", "203.0.113.7", "1.1.1.1, 10.9.9.9"},
		"rubbish before it":         {"<x>, , 203.0.113.7", "203.0.113.7", "<x>,"},
		"a port":                    {"203.0.113.7:4711, 10.1.2.3:80", "203.0.113.7", ""},
		"IPv6":                      {"2001:DB9::7, 2001:db8::1", "2001:db9::7", ""},
		"IPv6 with a port":          {"[2001:db9::7]:4711, [2001:db8::1]:80", "2001:db9::7", ""},
		"IPv6 in brackets":          {"[2001:db9::7], [2001:db8::1]", "2001:db9::7", ""},
		"IPv6 with a zone":          {"fe80::1%eth0", "fe80::1", ""},
		"IPv4 as IPv6":              {"::ffff:203.0.113.7, ::ffff:10.1.2.3", "203.0.113.7", ""},
		"IPv4 as IPv6 and a port":   {"[::ffff:203.0.113.7]:1", "203.0.113.7", ""},
		"as many as are looked at":  {"203.0.113.7" + many, "203.0.113.7", ""},
		"more":                      {"203.0.113.7, 10.0.0.1" + many, "", ""},
		"proxies alone":             {"10.0.0.1, 192.0.2.1", "", ""},
		"nothing":                   {"", "", ""},
		"nothing behind it":         {"203.0.113.7,", "", ""},
		"a word":                    {"203.0.113.7, unknown", "", ""},
		"half an address":           {"203.0.113", "", ""},
		"a port without a number":   {"203.0.113.7:http", "", ""},
		"brackets that do not fit":  {"203.0.113.7, 2001:db9::7]x", "", ""},
		"an address that has space": {"203.0.113.7 10.0.0.1", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			caller, before, ok := proxies.Caller(c.list)
			testkit.Want(t, caller == c.caller && before == c.before && ok == (c.caller != ""),
				"%q: got %q behind %q, %t; want %q behind %q", c.list, caller, before, ok, c.caller, c.before)
		})
	}
	for address, want := range map[string]bool{
		"10.1.2.3": true, "::ffff:10.1.2.3": true, "192.0.2.1": true, "2001:db8::1": true, "192.0.2.2": false, "": false, "@": false,
	} {
		testkit.Want(t, proxies.Has(address) == want && !Proxies(nil).Has(address), "%q: want %t, and false without proxies", address, want)
	}
}
