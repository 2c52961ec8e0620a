package config

import (
	"errors"
	"fmt"
	"strings"
)

// CallerKey says by what callers are told apart.
//
// Shape: By is "peer" (the address that the connection comes from), "authority",
// "metadata" (the value of the metadata key Name; only then is Name set) or
// "none" (all are one).
type CallerKey struct {
	By   string
	Name string
}

// String returns the key as it is written: "peer", "metadata:x-tenant".
func (k CallerKey) String() string {
	if k.Name != "" {
		return k.By + metadataMark + k.Name
	}
	return k.By
}

const (
	byMetadata   = "metadata"
	metadataMark = ":"
)

// callerKey is the kind of *CallerKey fields.
type callerKey struct{}

func (k callerKey) words() []string { return []string{"peer", "authority", none} }

func (k callerKey) set(field any, text string) error {
	key := CallerKey{}
	by, name, named := strings.Cut(text, metadataMark)
	if named && by == byMetadata {
		key = CallerKey{byMetadata, name}
		if err := checkCallerName(name); err != nil {
			return err
		}
	} else if err := (oneOf{words: k.words()}).set(&key.By, text); err != nil {
		return meantMetadata(text, err)
	}
	*field.(*CallerKey) = key
	return nil
}

// checkCallerName refuses names whose values cannot be written in a file, and
// the authority, which has a word of its own.
func checkCallerName(name string) error {
	if strings.HasSuffix(name, "-bin") {
		return fmt.Errorf("%s is binary metadata, whose values cannot be written down", quote(name))
	}
	if name == authorityField || name == "authority" || name == "host" {
		return fmt.Errorf("%s is not metadata; did you mean authority?", quote(name))
	}
	return checkHeaderName(name)
}

// meantMetadata says more about text that is no known word, where it is.
func meantMetadata(text string, unknown error) error {
	if text == byMetadata {
		return errors.New("metadata needs a name, as in metadata:x-tenant")
	}
	if strings.HasSuffix(unknown.Error(), "?") || checkCallerName(text) != nil {
		return unknown
	}
	return fmt.Errorf("%w; did you mean metadata:%s?", unknown, text)
}

func (k callerKey) show(field any) string { return field.(*CallerKey).String() }

func (k callerKey) allowed() string {
	return strings.Join(k.words(), ", ") + ", metadata:NAME"
}
