package config

import (
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// KeyPair is a certificate with its chain and its key, as PEM files.
type KeyPair struct{ Cert, Key string }

// Trust is who is known by which certificate, and what is shown. It is one type for all keys
// of it, each of which has some of its parts: every type would be read by code of its own.
type Trust struct {
	CA        string   // who signs certificates, a PEM file; "": for callers nobody is asked, for upstreams the system's
	Cert, Key string   // what is shown, PEM files
	Name      string   // that upstreams are known by; "": their host
	Names     []string // globs of names of callers; empty: any
	Required  bool     // a caller who shows none is refused
}

const (
	maxKeyPairs    = 100 // certificates of the port
	maxClientNames = 1000
)

// The words of tls_clear.
const (
	refuseClear = "refuse"
	allowClear  = "allow"
)

func tlsKeys() []Key {
	return []Key{
		{Name: "tls", Default: none,
			Applies: ByReload, Help: "certificates by which the port serves TLS: of the name that a caller asks for, otherwise the first; files that change are read again",
			kind: keyPairs{}, field: func(c *Config) any { return &c.TLS }},
		{Name: "tls_clear", Default: refuseClear,
			Applies: ByReload, Help: "whether a port that serves TLS serves callers without it, too",
			kind: oneOf{words: []string{refuseClear, allowClear}}, field: func(c *Config) any { return &c.TLSClear }},
		{Name: "tls_client", Default: none,
			Applies: ByReload, Help: "certificates by which callers over TLS show who they are",
			kind: clientTrust(), field: func(c *Config) any { return &c.TLSClient }},
	}
}

func clientTrust() record[Trust] {
	return record[Trust]{
		form: "{ca: FILE, names: [NAME, ...], required: true or false}",
		table: []part[Trust]{
			{"ca", none, "who signs them: certificates in a PEM file; read again when it changes", freeText{cleanFile, "a path"},
				func(t *Trust) any { return &t.CA }},
			{"names", none, "who is let in: the first URI, DNS name or email address of a certificate that one of these matches is its caller's identity; none: the first of all", list{cleanClientName, "names in which * stands for anything but . and /", maxClientNames},
				func(t *Trust) any { return &t.Names }},
			{"required", "false", "whether who shows no certificate is refused", toggle{},
				func(t *Trust) any { return &t.Required }},
		},
		check: func(t *Trust, node *yaml.Node, at *outline) {
			if t.CA == "" {
				at.fault(node, at.key, "has no ca", "ca: the file of who signs callers' certificates")
			}
		},
	}
}

func cleanClientName(name string) (string, error) {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("%s is no name in a certificate", quote(name))
	}
	return name, nil
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

// keyPairs is the kind of *[]KeyPair fields: a list of mappings.
type keyPairs struct{}

func (k keyPairs) set(field any, text string) error {
	if text != none {
		return fmt.Errorf("%s is no list of certificates", quote(text))
	}
	*field.(*[]KeyPair) = nil
	return nil
}

func (k keyPairs) setNode(field any, node *yaml.Node, at *outline) {
	switch {
	case isEmpty(node):
		*field.(*[]KeyPair) = nil
		return
	case node.Kind != yaml.SequenceNode:
		at.fault(node, at.key, "is no list", k.allowed())
		return
	case len(node.Content) > maxKeyPairs:
		at.fault(node, at.key, fmt.Sprintf("%d certificates are too many", len(node.Content)), k.allowed())
		return
	}
	all := make([]KeyPair, len(node.Content))
	for i, item := range node.Content {
		k.pair(&all[i], fmt.Sprintf("%s[%d]", at.key, i), resolve(item), at)
	}
	if len(at.faults) == 0 {
		*field.(*[]KeyPair) = all
	}
}

// pair reads one of them.
func (k keyPairs) pair(p *KeyPair, path string, node *yaml.Node, at *outline) {
	if node.Kind != yaml.MappingNode {
		at.fault(node, path, "is not of the form {cert: FILE, key: FILE}", k.allowed())
		return
	}
	before := len(at.faults)
	var read Trust
	pairParts().read(&read, path, node, at)
	p.Cert, p.Key = read.Cert, read.Key
	if len(at.faults) == before && (p.Cert == "" || p.Key == "") {
		at.fault(node, path, "has no cert, or no key", k.allowed())
	}
}

func pairParts() record[Trust] {
	return record[Trust]{table: []part[Trust]{
		{"cert", "", "", freeText{cleanFile, "a path"}, func(p *Trust) any { return &p.Cert }},
		{"key", "", "", freeText{cleanFile, "a path"}, func(p *Trust) any { return &p.Key }},
	}}
}

func cleanFile(path string) (string, error) {
	if path == "" || strings.ContainsAny(path, "\x00\n") {
		return "", errors.New("is no path of a file")
	}
	return path, nil
}

func (k keyPairs) show(field any) string {
	if lines := k.lines(field); len(lines) > 0 {
		texts := make([]string, len(lines))
		for i, l := range lines {
			texts[i] = strings.TrimPrefix(l.text, "- ")
		}
		return "[" + strings.Join(texts, ", ") + "]"
	}
	return none
}

func (keyPairs) lines(field any) (lines []line) {
	for _, p := range *field.(*[]KeyPair) {
		lines = append(lines, line{p.Cert, fmt.Sprintf("- {cert: %s, key: %s}", yamlText(p.Cert), yamlText(p.Key))})
	}
	return lines
}

func (keyPairs) allowed() string {
	return fmt.Sprintf("[{cert: FILE, key: FILE}, ...], at most %d, or %s", maxKeyPairs, none)
}

func (keyPairs) parts() []partInfo { return nil }
