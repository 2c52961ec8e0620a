package config

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// UpstreamTLS is how upstreams with the mark tls: are known, and what they are shown. The
// zero value: by their own names and the roots of the system, and nothing.
type UpstreamTLS struct {
	CA, Cert, Key string // PEM files
	Name          string // that certificates are for
}

// SecureUpstreams reports whether any upstream speaks TLS.
func (c *Config) SecureUpstreams() bool {
	return slices.ContainsFunc(c.Upstreams, func(upstream string) bool { return strings.HasPrefix(upstream, tlsMark) })
}

func upstreamTLS() record[UpstreamTLS] {
	file := freeText{cleanFile, "a path"}
	return record[UpstreamTLS]{
		form: "{ca: FILE, cert: FILE, key: FILE, name: NAME}",
		table: []part[UpstreamTLS]{
			{"ca", "those of the system", "who signs certificates of upstreams: certificates in a PEM file", file,
				func(t *UpstreamTLS) any { return &t.CA }},
			{"cert", none, "certificate that upstreams are shown which ask for one, a PEM file", file,
				func(t *UpstreamTLS) any { return &t.Cert }},
			{"key", none, "its key, a PEM file", file, func(t *UpstreamTLS) any { return &t.Key }},
			{"name", "the host of the upstream", "the name that certificates of upstreams must be for, and that is asked for (SNI)", freeText{cleanDNSName, "a name"},
				func(t *UpstreamTLS) any { return &t.Name }},
		},
		check: func(t *UpstreamTLS, node *yaml.Node, at *outline) {
			if (t.Cert == "") != (t.Key == "") {
				at.fault(node, at.key, "has one of cert and key", "both or none")
			}
		},
	}
}
