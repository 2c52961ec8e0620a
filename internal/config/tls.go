package config

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/cabrank/cabrank/internal/certs"
)

const (
	maxKeyPairs    = 100 // certificates of the port
	maxClientNames = 1000
)

// The words of tls_clear.
const (
	refuseClear = "refuse"
	allowClear  = "allow"
)

func checkClients(c *certs.Clients, node *yaml.Node, at *outline) {
	if c.CA == "" {
		at.fault(node, at.key, "has no ca", "ca: the file of who signs callers' certificates")
	}
}

func checkPeers(p *certs.Peer, node *yaml.Node, at *outline) {
	if (p.Cert == "") != (p.Key == "") {
		at.fault(node, at.key, "has one of cert and key", "both or none")
	}
}

// SecureUpstreams reports whether any upstream speaks TLS.
func (c *Config) SecureUpstreams() bool {
	return slices.ContainsFunc(c.Upstreams, func(upstream string) bool { return strings.HasPrefix(upstream, tlsMark) })
}

// clientsFit sees to it that who has to show a certificate cannot come without TLS.
func (c *Config) clientsFit() *Fault {
	switch {
	case c.TLSClient.CA == "":
		return nil
	case len(c.TLS) == 0:
		return c.faultAt("tls_client", "asks callers for certificates, and the port serves no TLS", "with tls")
	case c.TLSClient.Required && c.ServesClear():
		return c.faultAt("tls_clear", "lets callers in without the certificate that tls_client requires", refuseClear)
	}
	return nil
}

// ServesClear reports whether callers without TLS are served.
func (c *Config) ServesClear() bool { return len(c.TLS) == 0 || c.TLSClear == allowClear }

// keyPairs are the certificates of the port.
func keyPairs() nested {
	return sequence("{cert: FILE, key: FILE}", maxKeyPairs, func(p *certs.Pair) (what string) {
		if p.Cert == "" || p.Key == "" {
			what = "has no cert, or no key"
		}
		return what
	})
}
