package config

import (
	"slices"
	"strings"
	"testing"
)

// Certificates are a list; what is wrong with one names it, and what is shown can be written
// back.
func TestCertificatesAreRead(t *testing.T) {
	const file = "tls:\n- {cert: a.crt, key: a.key}\n- cert: /b c.crt\n  key: b.key\ntls_clear: Allow\n"
	c := mustLoad(t, sources(map[string]string{"cabrank.yml": file}))
	want := []KeyPair{{"a.crt", "a.key"}, {"/b c.crt", "b.key"}}
	if !slices.Equal(c.TLS, want) || !c.ServesClear() {
		t.Errorf("%v, clear %v", c.TLS, c.ServesClear())
	}
	again := mustLoad(t, sources(map[string]string{"cabrank.yml": "tls: " + keyPairs{}.show(&c.TLS)}))
	if !slices.Equal(again.TLS, want) || again.ServesClear() {
		t.Errorf("read back: %v, clear %v", again.TLS, again.ServesClear())
	}
	for text, want := range map[string]string{
		"tls: a.crt":                          "is no list",
		"tls: [a.crt]":                        "cabrank.yml:1: tls[0]: is not of the form {cert: FILE, key: FILE}",
		"tls: [{cert: a, key: b}, {cert: a}]": "cabrank.yml:1: tls[1]: has no cert, or no key",
		"tls: [{cert: a, kye: b}]":            "cabrank.yml:1: tls[0].kye: unknown key; did you mean key?",
		"tls: [{cert: '', key: b}]":           "tls[0].cert: is no path of a file",
		"tls_clear: maybe":                    `tls_clear: "maybe" is unknown`,
	} {
		if got := strings.Join(faultsOf(t, sources(map[string]string{"cabrank.yml": text})), " "); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
