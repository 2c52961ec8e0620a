package config

import (
	"errors"
	"fmt"
	"reflect"
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

func checkClients(value any, node *yaml.Node, at *outline) {
	if value.(*certs.Clients).CA == "" {
		at.fault(node, at.key, "has no ca", "ca: the file of who signs callers' certificates")
	}
}

func checkPeers(value any, node *yaml.Node, at *outline) {
	if t := value.(*certs.Peer); (t.Cert == "") != (t.Key == "") {
		at.fault(node, at.key, "has one of cert and key", "both or none")
	}
}

// SecureUpstreams reports whether any upstream speaks TLS.
func (c *Config) SecureUpstreams() bool {
	return slices.ContainsFunc(c.Upstreams, func(upstream string) bool { return strings.HasPrefix(upstream, tlsMark) })
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

// keyPairs is the kind of *[]certs.Pair fields: a list of mappings.
type keyPairs struct{}

func (k keyPairs) set(field any, text string) error {
	if text != none {
		return fmt.Errorf("%s is no list of certificates", quote(text))
	}
	*field.(*[]certs.Pair) = nil
	return nil
}

func (k keyPairs) setNode(field any, node *yaml.Node, at *outline) {
	switch {
	case isEmpty(node):
		*field.(*[]certs.Pair) = nil
		return
	case node.Kind != yaml.SequenceNode:
		at.fault(node, at.key, "is no list", k.allowed())
		return
	case len(node.Content) > maxKeyPairs:
		at.fault(node, at.key, fmt.Sprintf("%d certificates are too many", len(node.Content)), k.allowed())
		return
	}
	all := make([]certs.Pair, len(node.Content))
	for i, item := range node.Content {
		k.pair(&all[i], fmt.Sprintf("%s[%d]", at.key, i), resolve(item), at)
	}
	if len(at.faults) == 0 {
		*field.(*[]certs.Pair) = all
	}
}

// pair reads one of them.
func (k keyPairs) pair(p *certs.Pair, path string, node *yaml.Node, at *outline) {
	if node.Kind != yaml.MappingNode {
		at.fault(node, path, "is not of the form {cert: FILE, key: FILE}", k.allowed())
		return
	}
	before := len(at.faults)
	readParts(reflect.ValueOf(p), path, node, at)
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
	var texts []string
	for _, l := range k.lines(field) {
		texts = append(texts, strings.TrimPrefix(l.text, "- "))
	}
	if texts == nil {
		return none
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

func (keyPairs) lines(field any) (lines []line) {
	for _, p := range *field.(*[]certs.Pair) {
		lines = append(lines, line{p.Cert, fmt.Sprintf("- {cert: %s, key: %s}", yamlText(p.Cert), yamlText(p.Key))})
	}
	return lines
}

func (keyPairs) allowed() string {
	return fmt.Sprintf("[{cert: FILE, key: FILE}, ...], at most %d, or %s", maxKeyPairs, none)
}
