package socket

import (
	"encoding/json"
	"testing"
	"unicode/utf8"
)

// What others publish is text when it leaves, in every dialect: a strict client would end.
func TestArgsAreUTF8(t *testing.T) {
	for d := range dialects {
		a := answer{kind: Evnt, channel: "news", args: json.RawMessage("\"caf\xe9\"")}
		if b := d.append(nil, &a); d != juggler1Proto && !utf8.Valid(b) {
			t.Errorf("dialect %d: %q", d, b)
		}
	}
}
