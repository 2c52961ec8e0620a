//go:build real || soak

package demo_test

import (
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/demo"
	"github.com/cabrank/cabrank/internal/testkit"
)

// relayScript plays a relay that runs onTERM when it is told to stop.
func relayScript(onTERM string) string {
	return "trap '" + onTERM + `' TERM
echo '{"msg":"listening","addr":"127.0.0.1:1"}' >&2
while :; do sleep 0.01; done`
}

func TestStartRelayWaitsForTheAddress(t *testing.T) {
	relay, err := demo.StartRelay(t.Context(), "sh", "-c", relayScript("exit 0"))
	testkit.Must(t, err)
	if relay.Addr != "127.0.0.1:1" {
		t.Errorf("address %q", relay.Addr)
	}
	if err := relay.Stop(); err != nil {
		t.Errorf("Stop: %v", err)
	}
}

func TestStartRelayShowsWhyItFailed(t *testing.T) {
	for script, want := range map[string]string{
		"echo 'cabrank: port 8080 is taken' >&2; exit 2": "exit status 2\ncabrank: port 8080 is taken",
		"exit 0": "it ended at once",
	} {
		_, err := demo.StartRelay(t.Context(), "sh", "-c", script)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", script, err, want)
		}
	}
	if _, err := demo.StartRelay(t.Context(), "/does/not/exist"); err == nil {
		t.Error("no error for a command that does not exist")
	}
}

func TestStopTellsOfABadEnd(t *testing.T) {
	relay, err := demo.StartRelay(t.Context(), "sh", "-c", relayScript("echo oops >&2; exit 1"))
	testkit.Must(t, err)
	if err := relay.Stop(); err == nil || !strings.Contains(err.Error(), "exit status 1") || !strings.Contains(err.Error(), "oops") {
		t.Errorf("got %v", err)
	}
}
