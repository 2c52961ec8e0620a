package schema_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// What an answer takes as JSON is known before: an empty message of two bytes is a hundred.
func TestWeighAnswer(t *testing.T) {
	m := kinds(t)
	for name, in := range map[string]string{
		"empty":   `{"list":[` + strings.Repeat(`{},`, 999) + `{}]}`,
		"texts":   `{"text":"` + strings.Repeat(`a\n\u0001`, 500) + `"}`,
		"any":     `{"any":{"@type":"t/test.Kind","text":"` + strings.Repeat("x", 500) + `"}}`,
		"nothing": `{}`,
	} {
		encoded, err := m.AppendRequest(nil, []byte(in))
		testkit.Must(t, err)
		out, err := m.AppendAnswer(nil, encoded)
		testkit.Must(t, err)
		_, text := m.WeighAnswer(encoded)
		testkit.Want(t, text >= len(out) && text <= 3*len(out)+1000, "%s: %d bytes were thought, %d are", name, text, len(out))
	}
	least := 1000 * 256
	testkit.Want(t, m.WeighRequest(bytes.Repeat([]byte(`{},`), 1000)) >= least, "1000 messages weigh less than %d", least)
}
