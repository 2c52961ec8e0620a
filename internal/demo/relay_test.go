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
	testkit.Want(t, relay.Addr == "127.0.0.1:1", "address %q", relay.Addr)
	err = relay.Stop()
	testkit.Want(t, err == nil, "Stop: %v", err)
}

func TestStartRelayShowsWhyItFailed(t *testing.T) {
	for script, want := range map[string]string{
		"echo 'cabrank: port 8080 is taken' >&2; exit 2": "exit status 2\ncabrank: port 8080 is taken",
		"exit 0": "it ended at once",
	} {
		_, err := demo.StartRelay(t.Context(), "sh", "-c", script)
		testkit.Want(t, err != nil && strings.Contains(err.Error(), want), "%s: got %v, want %q", script, err, want)
	}
	_, err := demo.StartRelay(t.Context(), "/does/not/exist")
	testkit.Want(t, err != nil, "no error for a command that does not exist")
}

func TestStopTellsOfABadEnd(t *testing.T) {
	relay, err := demo.StartRelay(t.Context(), "sh", "-c", relayScript("echo oops >&2; exit 1"))
	testkit.Must(t, err)
	err = relay.Stop()
	testkit.Want(t, err != nil && strings.Contains(err.Error(), "exit status 1") && strings.Contains(err.Error(), "oops"), "got %v", err)
}
