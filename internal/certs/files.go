package certs

import (
	"crypto/tls"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// lookEvery is how often files are looked at. One that has changed is read when it has
// stayed so for as long: its key may not be written yet.
const lookEvery = 250 * time.Millisecond

// Port says what a port needs for TLS: certificates, of which the first is for callers who
// name none of them, and what callers show.
type Port struct {
	Pairs   []Pair
	Clients Clients
}

// Files are those of a port.
//
// Life: Open, then Config for every connection, Close.
// Concurrency: every method may be called from anywhere.
type Files struct {
	log     *slog.Logger
	config  *tls.Config
	holds   atomic.Pointer[tls.Config] // what Config stands for
	names   atomic.Pointer[names]      // see Identity
	quit    chan struct{}
	looking sync.WaitGroup

	mu    sync.Mutex // a leaf, but for the log
	port  Port
	known []stamp // of the files that were read last
	seen  []stamp // of those that were looked at last
}

// stamp tells a file from what it was, and from another one of its name.
type stamp struct {
	info os.FileInfo // nil: it is not there
}

// Open reads the files, and reads them again when they change, until Close.
//
// Errors: one line of the first file that is wrong.
func Open(port Port, log *slog.Logger) (*Files, error) {
	f := &Files{log: log, quit: make(chan struct{})}
	if err := f.Replace(port); err != nil {
		return nil, err
	}
	f.config = &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return f.holds.Load(), nil }}
	f.looking.Go(f.look)
	return f, nil
}

// Check reads the files once. Errors: as Open.
func Check(port Port) error { return new(Files).load(port, nil) }

// Config is for tls.Server: it goes by the files as they are at each handshake. Keys of
// sessions are its own, so that they outlive a change.
func (f *Files) Config() *tls.Config { return f.config }

// Replace goes by other files from now on; with an error, which is one line, by those of
// before.
func (f *Files) Replace(port Port) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.load(port, port.stamps())
}

// load reads files of which now was seen before. The caller holds mu.
func (f *Files) load(port Port, now []stamp) error {
	next := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	for _, pair := range port.Pairs {
		certificate, err := pair.load(time.Now())
		if err != nil {
			return err
		}
		next.Certificates = append(next.Certificates, certificate)
	}
	if err := f.ask(next, &port.Clients); err != nil {
		return err
	}
	f.port, f.known, f.seen = port, now, now
	f.holds.Store(next)
	return nil
}

// look reads files again that have changed.
func (f *Files) look() {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-f.quit:
			return
		case <-tick.C:
			f.lookOnce()
		}
	}
}

func (f *Files) lookOnce() {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.port.stamps()
	settled := slices.EqualFunc(now, f.seen, same)
	f.seen = now
	if !settled || slices.EqualFunc(now, f.known, same) {
		return
	}
	if err := f.load(f.port, now); err != nil {
		f.known = now // said once
		f.log.Warn("certificates have changed and cannot be used: those of before stay", "error", err)
		return
	}
	f.log.Info("certificates have changed", "expires", f.first().UTC().Format(time.RFC3339))
}

// first is when the first of them expires.
func (f *Files) first() (at time.Time) {
	for _, c := range f.holds.Load().Certificates {
		if at.IsZero() || c.Leaf.NotAfter.Before(at) {
			at = c.Leaf.NotAfter
		}
	}
	return at
}

// Expires returns how long each certificate is good from now on, by its file; negative if it
// has expired.
func (f *Files) Expires() map[string]time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := map[string]time.Duration{}
	for i, c := range f.holds.Load().Certificates {
		all[f.port.Pairs[i].Cert] = time.Until(c.Leaf.NotAfter)
	}
	return all
}

// Close ends the looking. What was served goes on.
func (f *Files) Close() {
	close(f.quit)
	f.looking.Wait()
}

func (p *Port) stamps() []stamp {
	files := []string{p.Clients.CA}
	for _, pair := range p.Pairs {
		files = append(files, pair.Cert, pair.Key)
	}
	return stamps(files...)
}

func stamps(files ...string) (all []stamp) {
	for _, name := range files {
		info, _ := os.Stat(name) // nil says that it is not there
		all = append(all, stamp{info})
	}
	return all
}

func same(a, b stamp) bool {
	if a.info == nil || b.info == nil {
		return a.info == nil && b.info == nil
	}
	return os.SameFile(a.info, b.info) && a.info.ModTime().Equal(b.info.ModTime()) && a.info.Size() == b.info.Size()
}
