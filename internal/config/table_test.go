package config

import (
	"os"
	"strings"
	"testing"
)

// Every key is explained, with a page that there is.
func TestExplainKnowsEveryKey(t *testing.T) {
	for _, key := range Keys() {
		var text strings.Builder
		if err := Explain(&text, key.Name); err != nil || !strings.Contains(text.String(), key.Help) || !strings.Contains(text.String(), key.Env) {
			t.Errorf("%s: %v, %s", key.Name, err, text.String())
		}
		if _, err := os.Stat("../../" + key.page()); err != nil {
			t.Error(err)
		}
	}
}
