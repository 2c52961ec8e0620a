package certs

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"
)

// Pair is a certificate. The tags of it, Clients and Peer are for package config.
type Pair struct {
	Cert string `key:"cert" kind:"file" help:"a certificate with its chain"`
	Key  string `key:"key" kind:"file" help:"its key"`
}

// mostFile bounds a file that is read.
const mostFile = 1 << 20

// load reads a pair.
//
// Errors: one line that names the file, and what to do.
func (p Pair) load(now time.Time) (tls.Certificate, error) {
	chain, err := read(p.Cert)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("certificate %w", err)
	}
	key, err := read(p.Key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("key %w", err)
	}
	if isEncrypted(key) {
		return tls.Certificate{}, fmt.Errorf("key %s is encrypted: write one without a passphrase, which only cabrank may read", p.Key)
	}
	certificate, err := tls.X509KeyPair(chain, key)
	switch {
	case err != nil && strings.Contains(err.Error(), "does not match"):
		return certificate, fmt.Errorf("key %s is not that of certificate %s", p.Key, p.Cert)
	case err != nil:
		return certificate, fmt.Errorf("certificate %s with key %s: %s", p.Cert, p.Key, strings.TrimPrefix(err.Error(), "tls: "))
	}
	if certificate.Leaf, err = x509.ParseCertificate(certificate.Certificate[0]); err != nil { // GODEBUG may have it left out
		return certificate, fmt.Errorf("certificate %s: %w", p.Cert, err)
	}
	if until := certificate.Leaf.NotAfter; now.After(until) {
		return certificate, fmt.Errorf("certificate %s has expired at %s", p.Cert, until.UTC().Format(time.RFC3339))
	}
	return certificate, nil
}

// read reads a file whose size is bounded. A FIFO or a device would be waited for.
func read(name string) ([]byte, error) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, cause(err))
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no file", name)
	case info.Size() > mostFile:
		return nil, fmt.Errorf("%s has %d bytes, more than %d", name, info.Size(), mostFile)
	}
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, cause(err))
	}
	return content, nil
}

// cause drops the operation and the path, which the line already has.
func cause(err error) error {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return failed.Err
	}
	return err
}

func isEncrypted(key []byte) bool {
	for block, rest := pem.Decode(key); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "ENCRYPTED PRIVATE KEY" || strings.Contains(block.Headers["Proc-Type"], "ENCRYPTED") {
			return true
		}
	}
	return false
}
