package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/certs"
)

// Certificates are a list; what is wrong with one names it, and what is shown can be written
// back.
func TestCertificatesAreRead(t *testing.T) {
	const file = "tls:\n- {cert: a.crt, key: a.key}\n- cert: /b c.crt\n  key: b.key\ntls_clear: Allow\n"
	c := mustLoad(t, sources(map[string]string{"cabrank.yml": file}))
	want := []certs.Pair{{Cert: "a.crt", Key: "a.key"}, {Cert: "/b c.crt", Key: "b.key"}}
	if !slices.Equal(c.TLS, want) || !c.ServesClear() {
		t.Errorf("%v, clear %v", c.TLS, c.ServesClear())
	}
	again := mustLoad(t, sources(map[string]string{"cabrank.yml": "tls: " + nested{max: 9, list: true}.show(&c.TLS)}))
	if !slices.Equal(again.TLS, want) || again.ServesClear() {
		t.Errorf("read back: %v, clear %v", again.TLS, again.ServesClear())
	}
	trust := mustLoad(t, sources(map[string]string{"cabrank.yml": "tls: [{cert: a, key: b}]\ntls_client: {ca: /b c.pem, names: [\"*.shop\", 'spiffe://prod/*'], required: true}"}))
	shown := nested{}.show(&trust.TLSClient)
	if got := mustLoad(t, sources(map[string]string{"cabrank.yml": "tls: [{cert: a, key: b}]\ntls_client: " + shown})); !reflect.DeepEqual(got.TLSClient, trust.TLSClient) || len(got.TLSClient.Names) != 2 {
		t.Errorf("%s reads %+v", shown, got.TLSClient)
	}
	for text, want := range map[string]string{
		"tls: a.crt":                           "is no list",
		"tls: [a.crt]":                         "cabrank.yml:1: tls[0]: is not of the form {cert: FILE, key: FILE}",
		"tls: [{cert: a, key: b}, {cert: a}]":  "cabrank.yml:1: tls[1]: has no cert, or no key",
		"tls: [{cert: a, kye: b}]":             "cabrank.yml:1: tls[0].kye: unknown key; did you mean key?",
		"tls: [{cert: '', key: b}]":            "tls[0].cert: is no path of a file",
		"tls_clear: maybe":                     `tls_clear: "maybe" is unknown`,
		"tls_client: ca.pem":                   "cabrank.yml:1: tls_client: is not of the form {ca: FILE",
		"tls_client: {names: [a]}":             "cabrank.yml:1: tls_client: has no ca",
		"tls_client: {ca: a, required: maybe}": `tls_client.required: "maybe" is neither true nor false`,
		"tls_client: {ca: a, name: [b]}":       "tls_client.name: unknown key; did you mean names?",
		"tls_client: {ca: a}":                  "the port serves no TLS; allowed: with tls",
		"tls: [{cert: a, key: b}]\ntls_clear: allow\ntls_client: {ca: a, required: true}": "cabrank.yml:2: tls_clear: lets callers in without the certificate",
	} {
		if got := strings.Join(faultsOf(t, sources(map[string]string{"cabrank.yml": text})), " "); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
