package certs

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"strings"
)

// Peer says how the servers that this process connects to are verified, and what it shows them.
type Peer struct {
	CA   string `key:"ca" kind:"file" default:"those of the system" help:"who signs certificates of upstreams: certificates in a PEM file"`
	Cert string `key:"cert" kind:"file" default:"none" help:"certificate that upstreams are shown which ask for one, a PEM file"`
	Key  string `key:"key" kind:"file" default:"none" help:"its key, a PEM file"`
	Name string `key:"name" kind:"host" default:"the host of the upstream" help:"the name that certificates of upstreams must be for, and that is asked for (SNI)"`
}

// Peers are those of one Peer.
//
// Concurrency: every method may be called from anywhere.
type Peers struct{ kept }

// NewPeers reads the files. Errors: one line of the first that is wrong.
func NewPeers(p Peer, log *slog.Logger) (*Peers, error) {
	all := &Peers{kept{log: log.With("for", "upstreams")}}
	err := all.Replace(p)
	return all, err
}

// Check reads the files once. Errors: as NewPeers.
func (p Peer) Check() error {
	_, err := p.source().load()
	return err
}

// Replace goes by other files from now on; with an error, which is one line, by those of
// before.
func (all *Peers) Replace(p Peer) error { return all.replace(p.source()) }

func (p Peer) source() source {
	s := source{ca: p.CA, fill: func(config *tls.Config, ca *x509.CertPool) {
		config.NextProtos, config.RootCAs, config.ServerName = []string{"h2"}, ca, p.Name
	}}
	if p.Cert != "" {
		s.pairs = []Pair{{p.Cert, p.Key}}
	}
	return s
}

// Config is for tls.Client, to a host: by the files as they are now.
func (all *Peers) Config(host string) *tls.Config {
	config := all.now().config.Clone()
	config.ServerName = strings.TrimSuffix(cmp.Or(config.ServerName, host), ".")
	return config
}
