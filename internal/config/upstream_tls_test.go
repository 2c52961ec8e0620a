package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/certs"
)

// Upstreams that speak TLS have one form, and what they are known by is read and shown; what
// is wrong is one line.
func TestSecureUpstreamsAreRead(t *testing.T) {
	const file = "upstreams: [tls:API:443, 'tls:[::1]:1', tls:dns:Api.internal:2, a:3]\nupstream_tls: {ca: /b c.crt, cert: d.crt, key: d.key, name: E.internal}\n"
	c := mustLoad(t, sources(map[string]string{"cabrank.yml": file}))
	want := certs.Peer{CA: "/b c.crt", Cert: "d.crt", Key: "d.key", Name: "e.internal"}
	if got := []string{"tls:API:443", "tls:[::1]:1", "tls:dns:api.internal:2", "a:3"}; !slices.Equal(c.Upstreams, got) || !reflect.DeepEqual(c.UpstreamTLS, want) || len(c.Warnings) > 0 {
		t.Errorf("%q, %+v, %q", c.Upstreams, c.UpstreamTLS, c.Warnings)
	}
	if !IsName("tls:dns:a:1") || IsName("tls:a:1") || !c.SecureUpstreams() {
		t.Error("names are mistaken")
	}
	again := mustLoad(t, sources(map[string]string{"cabrank.yml": "upstreams: [a:1]\nupstream_tls: " + nested{}.show(&c.UpstreamTLS)}))
	if !reflect.DeepEqual(again.UpstreamTLS, want) || len(again.Warnings) != 1 || !strings.Contains(again.Warnings[0], "upstream_tls has no effect: no upstream begins with tls:") {
		t.Errorf("read back: %+v, %q", again.UpstreamTLS, again.Warnings)
	}
	for text, want := range map[string]string{
		"upstreams: [tls:a]":              `upstreams: "a" is not HOST:PORT`,
		"upstreams: [tls:unix:/a]":        `"tls:unix:/a" names no host`,
		"upstreams: [tls:tls:a:1]":        "names no host",
		"upstreams: [tls:srv:a]":          "names no host",
		"upstreams: [tls:b@a:1]":          "user information",
		"upstreams: ['tls:a:1', tls:a:1]": `"tls:a:1" is there twice`,
		"upstream_tls: a.crt":             "cabrank.yml:1: upstream_tls: is not of the form {ca: FILE, cert: FILE, key: FILE, name: NAME}",
		"upstream_tls: {cert: a}":         "upstream_tls: has one of cert and key; allowed: both or none",
		"upstream_tls: {cart: a}":         "upstream_tls.cart: unknown key; did you mean cert?",
		"upstream_tls: {ca: ''}":          "upstream_tls.ca: is no path of a file",
		"upstream_tls: {name: 'a b'}":     `"a b" is not a name that can be looked up`,
	} {
		if got := strings.Join(faultsOf(t, sources(map[string]string{"cabrank.yml": text})), " "); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
