package config

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// SecureUpstreams reports whether any upstream speaks TLS.
func (c *Config) SecureUpstreams() bool {
	return slices.ContainsFunc(c.Upstreams, func(upstream string) bool { return strings.HasPrefix(upstream, tlsMark) })
}

// upstreamTLS is how upstreams with the mark tls: are known, and what they are shown.
func upstreamTLS() record[Trust] {
	file := freeText{cleanFile, "a path"}
	return record[Trust]{
		form: "{ca: FILE, cert: FILE, key: FILE, name: NAME}",
		table: []part[Trust]{
			{"ca", "those of the system", "who signs certificates of upstreams: certificates in a PEM file", file,
				func(t *Trust) any { return &t.CA }},
			{"cert", none, "certificate that upstreams are shown which ask for one, a PEM file", file,
				func(t *Trust) any { return &t.Cert }},
			{"key", none, "its key, a PEM file", file, func(t *Trust) any { return &t.Key }},
			{"name", "the host of the upstream", "the name that certificates of upstreams must be for, and that is asked for (SNI)", freeText{cleanDNSName, "a name"},
				func(t *Trust) any { return &t.Name }},
		},
		check: func(t *Trust, node *yaml.Node, at *outline) {
			if (t.Cert == "") != (t.Key == "") {
				at.fault(node, at.key, "has one of cert and key", "both or none")
			}
		},
	}
}
