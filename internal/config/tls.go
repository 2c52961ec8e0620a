package config

import (
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// KeyPair is a certificate with its chain and its key, as PEM files.
type KeyPair struct{ Cert, Key string }

// maxKeyPairs bounds the certificates of the port.
const maxKeyPairs = 100

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
	}
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
	at.pairs(node, func(part string) string { return path + "." + part }, func(path, name string, key, value *yaml.Node) {
		to := map[string]*string{"cert": &p.Cert, "key": &p.Key}[name]
		if to == nil {
			at.fault(key, path, "unknown key"+didYouMean("", name, []string{"cert", "key"}), "cert, key")
		} else if what := storeNode(value, freeText{cleanFile, "a path"}, to); what != "" {
			at.fault(key, path, what, "a path")
		}
	})
	if len(at.faults) == before && (p.Cert == "" || p.Key == "") {
		at.fault(node, path, "has no cert, or no key", k.allowed())
	}
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
