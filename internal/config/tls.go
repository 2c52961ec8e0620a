package config

import (
	"fmt"
	"slices"
	"strings"
)

const (
	maxKeyPairs    = 100 // certificates of the port
	maxClientNames = 1000
)

// SecureUpstreams reports whether any upstream speaks TLS.
func (c *Config) SecureUpstreams() bool {
	return slices.ContainsFunc(c.Upstreams, func(upstream string) bool { return strings.HasPrefix(upstream, tlsMark) })
}

// tlsRules see to it that certificates are whole, and that who has to show one cannot come
// without TLS.
func (c *Config) tlsRules() []rule {
	clients, peer := c.TLSClient, c.UpstreamTLS
	asks := clients.CA != ""
	rules := []rule{
		{!asks && (clients.Required || len(clients.Names) > 0), "tls_client", "has no ca", "ca: the file of who signs callers' certificates"},
		{asks && len(c.TLS) == 0, "tls_client", "asks callers for certificates, and the port serves no TLS", "with tls"},
		{asks && clients.Required && len(c.TLS) > 0 && c.ServesClear(), "tls_clear", "lets callers in without the certificate that tls_client requires", "refuse"},
		{(peer.Cert == "") != (peer.Key == ""), "upstream_tls", "has one of cert and key", "both or none"},
	}
	for i, pair := range c.TLS {
		rules = append(rules, rule{pair.Cert == "" || pair.Key == "", fmt.Sprintf("tls[%d]", i), "has no cert, or no key", "both"})
	}
	return rules
}

// ServesClear reports whether callers without TLS are served.
func (c *Config) ServesClear() bool { return len(c.TLS) == 0 || c.TLSClear == "allow" }
