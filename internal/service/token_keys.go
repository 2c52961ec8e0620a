package service

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"github.com/cabrank/cabrank/internal/auth"
	"github.com/cabrank/cabrank/internal/config"
)

// mostKeyBytes bounds a file of keys.
const mostKeyBytes = 1 << 20

// OpenAuth reads the keys of tokens; nil if nobody is asked for one.
//
// Errors: one line with the key of the configuration and where it points, without the
// content.
func OpenAuth(c config.Auth, log *slog.Logger) (*auth.Verifier, error) {
	if !c.IsOn() {
		return nil, nil
	}
	return withKeys(c, log, auth.New)
}

// ReadKeys reads the keys again, which may have changed. Errors: as OpenAuth; then those
// of before hold on.
func ReadKeys(v *auth.Verifier, c config.Auth, log *slog.Logger) error {
	_, err := withKeys(c, log, func(o auth.Options) (*auth.Verifier, error) {
		err := v.Replace(o)
		return v, err
	})
	return err
}

func withKeys(c config.Auth, log *slog.Logger, take func(auth.Options) (*auth.Verifier, error)) (*auth.Verifier, error) {
	options := auth.Options{
		Audience: c.Audience, Issuer: c.Issuer, Optional: c.Optional, Log: log,
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
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	v, err := take(options)
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
