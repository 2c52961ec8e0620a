package certs

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Clients are callers who show certificates, if there is a CA.
type Clients struct {
	CA       string   `key:"ca" kind:"file" default:"none" help:"who signs them: certificates in a PEM file; read again when it changes"`
	Names    []string `key:"names" kind:"names" default:"none" help:"who is let in: the first URI, DNS name or email address of a certificate that one of these matches is its caller's identity; none: the first of all"`
	Required bool     `key:"required" default:"false" help:"whether who shows no certificate is refused"`
}

// mostName bounds an identity: it goes into headers and logs.
const mostName = 256

// errName refuses a certificate of somebody else.
var errName = errors.New("the certificate has no name that tls_client.names lists")

// names are those that are let in, one pattern for each glob; none: whoever is verified.
type names []*regexp.Regexp

func (c *Clients) patterns() (all names) {
	for _, glob := range c.Names {
		all = append(all, regexp.MustCompile("^"+strings.ReplaceAll(regexp.QuoteMeta(glob), `\*`, "[^./]*")+"$"))
	}
	return all
}

// ask has a port ask for certificates, and verify them. Sessions that are resumed are
// verified anew by crypto/tls, which holds what was shown against ClientCAs of now.
func (c *Clients) ask(port *tls.Config, ca *x509.CertPool, listed names) {
	port.ClientCAs, port.ClientAuth = ca, tls.VerifyClientCertIfGiven
	if c.Required {
		port.ClientAuth = tls.RequireAndVerifyClientCert
	}
	port.VerifyConnection = func(state tls.ConnectionState) error {
		_, err := listed.of(&state)
		return err
	}
}

// Identity is who the caller of a connection has shown to be by a certificate that was
// verified: its first URI, DNS name or email address that is let in. "" if it has shown none,
// or one without such a name where any will do.
//
// Errors: its names are not let in, or not any more.
func (f *Files) Identity(state *tls.ConnectionState) (string, error) {
	return f.holds.Load().names.of(state)
}

func (n names) of(state *tls.ConnectionState) (string, error) {
	if len(state.VerifiedChains) == 0 {
		return "", nil
	}
	shown := state.PeerCertificates[0]
	var all []string
	for _, uri := range shown.URIs {
		all = append(all, uri.String())
	}
	all = append(append(all, shown.DNSNames...), shown.EmailAddresses...)
	for _, name := range all {
		if len(name) <= mostName && !strings.ContainsFunc(name, unprintable) && n.has(name) {
			return name, nil
		}
	}
	if len(n) > 0 {
		return "", errName
	}
	return "", nil
}

func unprintable(r rune) bool { return r <= ' ' || r > '~' }

func (n names) has(name string) bool {
	for _, pattern := range n {
		if pattern.MatchString(name) {
			return true
		}
	}
	return len(n) == 0
}

// authorities reads certificates of who signs others.
//
// Errors: one line that names the file.
func authorities(file string) (*x509.CertPool, error) {
	text, err := read(file)
	if err != nil {
		return nil, fmt.Errorf("ca %w", err)
	}
	pool, found := x509.NewCertPool(), false
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("ca %s: %w", file, err)
		}
		pool.AddCert(certificate)
		found = true
	}
	if !found {
		return nil, fmt.Errorf("ca %s has no certificate in PEM", file)
	}
	return pool, nil
}
