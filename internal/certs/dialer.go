package certs

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"time"
)

// Upstream is how servers over TLS are called. The zero value holds them against the
// system's roots, by the host of their address, and shows nothing.
type Upstream struct {
	CA        string // a PEM file with the certificates of who signs theirs; "": the system's
	Cert, Key string // what is shown to them, as PEM files; "": nothing
	Name      string // by which they are asked for and verified; "": the host of the address
}

// errNoHTTP2 is of a server that agrees on no protocol, or another one.
var errNoHTTP2 = errors.New("the server does not agree on HTTP/2 (ALPN h2)")

// Dialer connects to servers over TLS, which are always verified. Files that have changed are
// read again for the next connection.
//
// Concurrency: every method may be called from anywhere.
type Dialer struct {
	log *slog.Logger

	mu     sync.Mutex // a leaf, but for the log
	set    Upstream
	known  []stamp
	config *tls.Config
}

// NewDialer reads the files. Errors: one line of the first that is wrong.
func NewDialer(set Upstream, log *slog.Logger) (*Dialer, error) {
	d := &Dialer{log: log}
	return d, d.Replace(set)
}

// Replace goes by other files from now on; with an error, which is one line, by those of
// before.
func (d *Dialer) Replace(set Upstream) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.load(set, set.stamps())
}

// load reads files of which now was seen before. The caller holds mu.
func (d *Dialer) load(set Upstream, now []stamp) error {
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}}
	if set.CA != "" {
		roots, err := authorities(set.CA)
		if err != nil {
			return err
		}
		config.RootCAs = roots
	}
	if set.Cert != "" {
		shown, err := Pair{set.Cert, set.Key}.load(time.Now())
		if err != nil {
			return err
		}
		config.Certificates = []tls.Certificate{shown}
	}
	d.set, d.known, d.config = set, now, config
	return nil
}

func (u *Upstream) stamps() (all []stamp) {
	for _, name := range []string{u.CA, u.Cert, u.Key} {
		info, _ := os.Stat(name) // nil says that it is not there
		all = append(all, stamp{info})
	}
	return all
}

// Dial connects to "host:port", and shakes hands. It ends with ctx.
//
// Errors: one line that says what is wrong with the server's certificate, or with ours.
func (d *Dialer) Dial(ctx context.Context, address string) (net.Conn, error) {
	config, err := d.configFor(address)
	if err != nil {
		return nil, err
	}
	nc, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	secure := tls.Client(nc, config)
	if err = secure.HandshakeContext(ctx); err == nil && secure.ConnectionState().NegotiatedProtocol != "h2" {
		err = errNoHTTP2
	}
	if err != nil {
		_ = nc.Close() // it was never used
		return nil, fmt.Errorf("TLS with %s as %s: %w", address, config.ServerName, err)
	}
	return secure, nil
}

func (d *Dialer) configFor(address string) (*tls.Config, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if now := d.set.stamps(); !slices.EqualFunc(now, d.known, same) {
		if err := d.load(d.set, now); err != nil {
			d.known = now // said once
			d.log.Warn("upstream_tls has changed and cannot be used: what it was before stays", "error", err)
		}
	}
	config := d.config.Clone()
	if config.ServerName = d.set.Name; config.ServerName == "" {
		config.ServerName = host
	}
	return config, nil
}
