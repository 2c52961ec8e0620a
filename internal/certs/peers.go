package certs

import (
	"cmp"
	"crypto/tls"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// Peer says how the servers that this process connects to are verified, and what it shows them.
type Peer struct {
	CA        string // PEM file; "": the roots of the system
	Cert, Key string // PEM files; "": it shows nothing
	Name      string // that a certificate must be for; "": the host that is connected to
}

// Peers are those of one Peer.
//
// Concurrency: every method may be called from anywhere.
type Peers struct {
	log *slog.Logger

	mu     sync.Mutex // a leaf, but for the log
	peer   Peer
	known  []stamp // of the files that were read last
	config *tls.Config
}

// NewPeers reads the files. Errors: one line of the first that is wrong.
func NewPeers(p Peer, log *slog.Logger) (*Peers, error) {
	all := &Peers{log: log}
	err := all.Replace(p)
	return all, err
}

// Check reads the files once. Errors: as NewPeers.
func (p Peer) Check() error {
	_, err := NewPeers(p, nil)
	return err
}

// Replace goes by other files from now on; with an error, which is one line, by those of
// before.
func (all *Peers) Replace(p Peer) error {
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.load(p, p.stamps())
}

// load reads files of which now was seen before. The caller holds mu.
func (all *Peers) load(p Peer, now []stamp) (err error) {
	next := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}}
	if p.CA != "" {
		if next.RootCAs, err = authorities(p.CA); err != nil {
			return err
		}
	}
	if p.Cert != "" {
		certificate, err := Pair{p.Cert, p.Key}.load(time.Now())
		if err != nil {
			return err
		}
		next.Certificates = []tls.Certificate{certificate}
	}
	all.peer, all.known, all.config = p, now, next
	return nil
}

func (p Peer) stamps() []stamp { return stamps(p.CA, p.Cert, p.Key) }

// Config is for tls.Client, to a host: by the files as they are now. Those that have changed
// and cannot be used are told once, and what was read before holds.
func (all *Peers) Config(host string) *tls.Config {
	all.mu.Lock()
	defer all.mu.Unlock()
	if now := all.peer.stamps(); !slices.EqualFunc(now, all.known, same) {
		if err := all.load(all.peer, now); err != nil {
			all.known = now
			all.log.Warn("certificates for upstreams have changed and cannot be used: those of before stay", "error", err)
		}
	}
	config := all.config.Clone()
	config.ServerName = strings.TrimSuffix(cmp.Or(all.peer.Name, host), ".")
	return config
}

// Expires is as that of Files: of the certificate that is shown, if there is one.
func (all *Peers) Expires() map[string]time.Duration {
	all.mu.Lock()
	defer all.mu.Unlock()
	if len(all.config.Certificates) == 0 {
		return nil
	}
	return map[string]time.Duration{all.peer.Cert: time.Until(all.config.Certificates[0].Leaf.NotAfter)}
}
