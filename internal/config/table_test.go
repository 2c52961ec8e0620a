package config

import (
	"os"
	"regexp"
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
		page := regexp.MustCompile(`(?m)^  docs +(\S+)$`).FindStringSubmatch(text.String())
		if _, err := os.Stat("../../" + page[1]); err != nil {
			t.Error(err)
		}
	}
}
