package config

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// base64Bytes is the kind of *[]byte fields (RFC 4648 4). Blanks and line breaks
// between the characters are left out, as YAML blocks have them.
func base64Bytes(most Size) value[[]byte] {
	return value[[]byte]{
		read: func(into *[]byte, text string) error {
			if text == none {
				*into = nil
				return nil
			}
			message, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
			switch {
			case err != nil: // the text is not repeated: it may hold secrets
				return errors.New("is not base64")
			case len(message) > int(most):
				return fmt.Errorf("has %d bytes", len(message))
			}
			*into = message
			return nil
		},
		write: func(message []byte) string { return cmp.Or(base64.StdEncoding.EncodeToString(message), none) },
		legal: fmt.Sprintf("base64 of at most %v, or %s", most, none),
	}
}
