package config

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// Every key is explained, with a page that there is: its own, or that of its section.
func TestExplainKnowsEveryKey(t *testing.T) {
	pages := map[string]string{}
	for _, key := range Keys() {
		var text strings.Builder
		if err := Explain(&text, key.Name); err != nil || !strings.Contains(text.String(), key.Help) || !strings.Contains(text.String(), key.Env) {
			t.Errorf("%s: %v, %s", key.Name, err, text.String())
		}
		page := regexp.MustCompile(`(?m)^  docs +(\S+)$`).FindStringSubmatch(text.String())
		_, err := os.Stat("../../" + page[1])
		testkit.Want(t, err == nil, "%v", err)
		pages[key.Name] = page[1]
	}
	for key, want := range map[string]string{"listen": "configuration", "queue.length": "rank", "workers.count": "workers", "workers.slots": "rank", "socket.redis": "socket-redis", "auth": "socket-auth"} {
		testkit.Want(t, pages[key] == "docs/"+want+".md", "%s is in %s", key, pages[key])
	}
}
