package service

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"strings"
	"time"

	"github.com/cabrank/cabrank/internal/auth"
	"github.com/cabrank/cabrank/internal/callers"
	"github.com/cabrank/cabrank/internal/certs"
	"github.com/cabrank/cabrank/internal/cli"
	"github.com/cabrank/cabrank/internal/config"
	"github.com/cabrank/cabrank/internal/relay"
)

const (
	// mostKeyBytes bounds a file of keys.
	mostKeyBytes = 1 << 20
	// leastToken is the length of a token that nobody guesses, in bytes.
	leastToken = 16
)

// bearers asks calls for their token (callers.Auth).
type bearers struct{ *auth.Verifier }

// Verify implements callers.Auth.
func (b bearers) Verify(authorization string) (callers.Pass, error) {
	id, err := b.Verifier.Verify(auth.Bearer(authorization))
	if err != nil {
		return callers.Pass{}, err
	}
	return callers.Pass{User: id.User, Until: id.Expires, May: id.MayCall}, nil
}

// openAuth reads the keys of tokens, if anybody is asked for one: sockets, or all.
//
// Errors: one line with the key of the configuration and where it points, without the
// content.
func (s *service) openAuth(options *relay.Options) (err error) {
	asked := s.cfg.Auth
	if !asked.IsOn() || !asked.AllDoors() && len(s.cfg.Socket.Paths) == 0 {
		return nil
	}
	if s.verifier, err = s.withKeys(asked, auth.New); err != nil {
		return err
	}
	if asked.AllDoors() {
		options.Auth = bearers{s.verifier}
	}
	return nil
}

// readKeys reads the keys again, at a reload. Errors: as openAuth; then those of before
// hold on.
func (s *service) readKeys(cfg *config.Config) error {
	if s.verifier == nil {
		return nil
	}
	_, err := s.withKeys(cfg.Auth, func(o auth.Options) (*auth.Verifier, error) { return s.verifier, s.verifier.Replace(o) })
	return err
}

func (s *service) withKeys(c config.Auth, take func(auth.Options) (*auth.Verifier, error)) (*auth.Verifier, error) {
	options := auth.Options{
		Audience: c.Audience, Issuer: c.Issuer, Optional: c.Optional, Log: s.log,
		Defaults: auth.Rules{Call: c.Call, Publish: c.Publish, Subscribe: c.Subscribe},
	}
	name, source, err := "auth.key", c.Key, error(nil)
	switch {
	case c.Secret != "":
		name, source = "auth.secret", c.Secret
		options.Secret, err = readKey(source)
	case strings.Contains(source, "://"):
		options.URL = source
	default:
		options.Keys, err = readKey(source)
	}
	var v *auth.Verifier
	if err == nil {
		v, err = take(options)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return v, nil
}

// readKey returns what a file has, or the variable of env:NAME.
func readKey(source string) ([]byte, error) {
	if name, ok := strings.CutPrefix(source, "env:"); ok {
		value := os.Getenv(name)
		if value == "" {
			return nil, errors.New("the variable is not set")
		}
		return []byte(value), nil
	}
	file, err := os.Open(source)
	if err != nil {
		return nil, nameless("the file cannot be opened", err)
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, mostKeyBytes+1))
	switch {
	case err != nil:
		return nil, nameless("the file cannot be read", err)
	case len(content) > mostKeyBytes:
		return nil, errors.New("the file is longer than 1 MiB")
	}
	return content, nil
}

// nameless leaves the name of the file out: somebody may have put the secret in its place.
func nameless(what string, err error) error {
	if pathError, ok := errors.AsType[*fs.PathError](err); ok {
		err = pathError.Err
	}
	return fmt.Errorf("%s: %w", what, err)
}

// pushToken reads the token; "" if none is asked for.
func pushToken(source string) (string, error) {
	if source == "" {
		return "", nil
	}
	content, err := readKey(source)
	if err != nil {
		return "", err
	}
	token := bytes.TrimSpace(content)
	if len(token) < leastToken {
		return "", errors.New("the token is shorter than 16 bytes")
	}
	return string(token), nil
}

// secure has the relay serve TLS as a configuration has it. Certificates that cannot be used
// are an error, unless there are others, which stay.
func (s *service) secure(cfg *config.Config, options *relay.Options) error {
	files, wanted := s.certs.Load(), securePort(cfg)
	switch {
	case len(wanted.Pairs) == 0:
		return nil
	case files != nil:
		if err := files.Replace(wanted); err != nil {
			s.log.Warn("certificates cannot be used: those of before stay", "error", err)
		}
	default:
		var err error
		if files, err = certs.Open(wanted, s.log); err != nil {
			return faulty(cfg, "tls", err)
		}
		s.certs.Store(files)
	}
	options.TLS, options.ClearText, options.Identity = files.Config(), cfg.ServesClear(), files.Identity
	return nil
}

// faulty says what is wrong with the files of a key.
func faulty(cfg *config.Config, key string, err error) error {
	return cli.UsageError(config.Faults{cfg.FaultAt(key, err.Error(), "")})
}

// securePort is what the port of a configuration needs.
func securePort(cfg *config.Config) certs.Port {
	return certs.Port{Pairs: cfg.TLS, Clients: cfg.TLSClient}
}

// expiring tells for how long certificates are good; nothing without any.
func (s *service) expiring() map[string]time.Duration {
	all := s.peers.Expires()
	if files := s.certs.Load(); files != nil && len(s.current().TLS) > 0 {
		of := files.Expires()
		maps.Copy(of, all)
		return of
	}
	return all
}
