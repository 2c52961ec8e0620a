package certs

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// kept is a configuration of TLS by the files that it is made of, as they are when it is
// asked for.
//
// Concurrency: every method may be called from anywhere.
type kept struct {
	log   *slog.Logger
	every time.Duration // how often the files are looked at, at most
	holds atomic.Pointer[loaded]

	mu     sync.Mutex // a leaf, but for the log
	looked time.Time
}

// source says what a configuration is made of.
type source struct {
	ca    string // PEM file, "": none
	pairs []Pair
	names names                                       // of callers, see Files.Identity
	fill  func(config *tls.Config, ca *x509.CertPool) // with the rest; no pool without a file
}

// loaded is a source and what it was when it was read.
type loaded struct {
	source
	config *tls.Config
	known  []stamp // of the files that were looked at last
}

// stamp tells a file from what it was, and from another one of its name.
type stamp struct {
	info os.FileInfo // nil: it is not there
}

// load reads the files. Errors: one line of the first that is wrong.
func (s source) load() (*loaded, error) {
	next := &loaded{s, &tls.Config{MinVersion: tls.VersionTLS12}, s.stamps()}
	for _, pair := range s.pairs {
		certificate, err := pair.load(time.Now())
		if err != nil {
			return nil, err
		}
		next.config.Certificates = append(next.config.Certificates, certificate)
	}
	var ca *x509.CertPool
	if s.ca != "" {
		var err error
		if ca, err = authorities(s.ca); err != nil {
			return nil, err
		}
	}
	s.fill(next.config, ca)
	return next, nil
}

func (s *source) stamps() (all []stamp) {
	files := []string{s.ca}
	for _, pair := range s.pairs {
		files = append(files, pair.Cert, pair.Key)
	}
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

// replace goes by other files from now on; with an error, by those of before.
func (k *kept) replace(s source) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	next, err := s.load()
	if err == nil {
		k.holds.Store(next)
	}
	return err
}

// now is what the files are. One looks at them for all others, who do not wait for it: a
// disk may be slow.
func (k *kept) now() *loaded {
	if k.mu.TryLock() {
		defer k.mu.Unlock()
		if time.Since(k.looked) >= k.every {
			k.looked = time.Now()
			k.look()
		}
	}
	return k.holds.Load()
}

// look reads the files again that have changed. Those that cannot be used are told once. The
// caller holds mu.
func (k *kept) look() {
	old := k.holds.Load()
	found := old.stamps()
	if slices.EqualFunc(found, old.known, same) {
		return
	}
	next, err := old.load()
	if err != nil {
		next = &loaded{old.source, old.config, found}
		k.log.Warn("certificates have changed and cannot be used: those of before stay", "error", err)
	} else {
		k.log.Info("certificates have changed")
	}
	k.holds.Store(next)
}

// Expires returns how long each certificate is good from now on, by its file; negative if it
// has expired.
func (k *kept) Expires() map[string]time.Duration {
	all := map[string]time.Duration{}
	now := k.now()
	for i, c := range now.config.Certificates {
		all[now.pairs[i].Cert] = time.Until(c.Leaf.NotAfter)
	}
	return all
}
