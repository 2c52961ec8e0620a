package service

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/cabrank/cabrank/internal/auth"
	"github.com/cabrank/cabrank/internal/config"
	"github.com/cabrank/cabrank/internal/relay"
)

// mostKeyBytes bounds a file of keys.
const mostKeyBytes = 1 << 20

// bearers asks calls for their token (relay.Auth).
type bearers struct{ *auth.Verifier }

// Verify implements relay.Auth.
func (b bearers) Verify(authorization string) (relay.Pass, error) {
	id, err := b.Verifier.Verify(auth.Bearer(authorization))
	if err != nil {
		return relay.Pass{}, err
	}
	return relay.Pass{User: id.User, Until: id.Expires, May: id.MayCall}, nil
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
