package config

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// maxWarmUp bounds the message of the warm-up call.
const maxWarmUp = 64 * KiB

// base64Bytes is the kind of *[]byte fields (RFC 4648 4). Blanks and line breaks
// between the characters are left out, as YAML blocks have them.
type base64Bytes struct{ max Size }

func (k base64Bytes) set(field any, text string) error {
	if text == none {
		*field.(*[]byte) = nil
		return nil
	}
	message, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	switch {
	case err != nil: // the text is not repeated: it may hold secrets
		return errors.New("is not base64")
	case len(message) > int(k.max):
		return fmt.Errorf("has %d bytes", len(message))
	}
	*field.(*[]byte) = message
	return nil
}

func (k base64Bytes) show(field any) string {
	if message := *field.(*[]byte); len(message) > 0 {
		return base64.StdEncoding.EncodeToString(message)
	}
	return none
}

func (k base64Bytes) allowed() string { return fmt.Sprintf("base64 of at most %v, or %s", k.max, none) }
