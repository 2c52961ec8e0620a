package certs

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"time"
)

// lookEvery is how often files of a port are looked at: a handshake is not to wait for the
// files of a hundred certificates.
const lookEvery = 250 * time.Millisecond

// Port says what a port needs for TLS: certificates, of which the first is for callers who
// name none of them, and what callers show.
type Port struct {
	Pairs   []Pair
	Clients Clients
}

// Files are those of a port. They are looked at while connections begin.
//
// Concurrency: every method may be called from anywhere.
type Files struct {
	kept
	config *tls.Config
}

// Open reads the files. Errors: one line of the first that is wrong.
func Open(port Port, log *slog.Logger) (*Files, error) {
	f := &Files{kept: kept{log: log, every: lookEvery}}
	f.config = &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return f.now().config, nil }}
	err := f.Replace(port)
	return f, err
}

// Check reads the files once. Errors: as Open.
func Check(port Port) error {
	_, err := port.source().load()
	return err
}

// Config is for tls.Server: it goes by the files as they are at each handshake. Keys of
// sessions are its own, so that they outlive a change.
func (f *Files) Config() *tls.Config { return f.config }

// Replace goes by other files from now on; with an error, which is one line, by those of
// before.
func (f *Files) Replace(port Port) error { return f.replace(port.source()) }

func (p *Port) source() source {
	s := source{ca: p.Clients.CA, pairs: p.Pairs, names: p.Clients.patterns()}
	s.fill = func(config *tls.Config, ca *x509.CertPool) {
		config.NextProtos = []string{"h2", "http/1.1"}
		if ca != nil {
			p.Clients.ask(config, ca, s.names)
		}
	}
	return s
}
