package door

import "testing"

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
		if got := IsOwnOrigin(tc.origin, tc.host); got != tc.want {
			t.Errorf("a page of %s at %s: %t", tc.origin, tc.host, got)
		}
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
		if got := known.Has(origin); got != want {
			t.Errorf("%q: %t", origin, got)
		}
	}
}
