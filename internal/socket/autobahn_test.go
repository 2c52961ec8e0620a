//go:build conformance

package socket

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/cabrank/cabrank/internal/testkit"
)

// autobahnCases is how many cases there are in the sections 1 to 10.
const autobahnCases = 301

// echo sends back what comes, by the reader and the frames that all sockets have. No
// message of juggler is one of the suite's.
func echo(s *session, kind int, message []byte) error {
	if kind == opText && !utf8.Valid(message) {
		return errUTF8
	}
	b := append(make([]byte, frameHeader, frameHeader+len(message)), message...)
	s.out.reply(newFrame(withHeader(b, byte(kind)), &s.account))
	return s.awaitRoom()
}

// The suite finds nothing that fails. CABRANK_AUTOBAHN names other cases, whose number is
// not known here.
func TestAutobahn(t *testing.T) {
	cases, want := []string{"1.*", "2.*", "3.*", "4.*", "5.*", "6.*", "7.*", "9.*", "10.*"}, autobahnCases
	if others := os.Getenv("CABRANK_AUTOBAHN"); others != "" {
		cases, want = strings.Split(others, ","), 0
	}
	server := New(Options{Broker: newScripted(), AllowEmptySubprotocol: true, ReadLimit: 32 << 20, BufferTotal: 1 << 30})
	server.echo = echo
	listener := httptest.NewServer(server)
	t.Cleanup(func() {
		server.Close()
		listener.Close()
	})
	good := []string{"OK", "NON-STRICT", "INFORMATIONAL"}
	// The suite would have the server hang up first. Where text is no UTF-8 it reads on for
	// a second, so that a reset does not overtake its close frame: the suite is faster.
	goodEnd := append([]string{"FAILED BY CLIENT"}, good...)
	if want == 0 {
		good = append(good, "UNIMPLEMENTED")
	}
	results := runAutobahn(t, "ws"+strings.TrimPrefix(listener.URL, "http"), cases)
	counts := map[string]int{}
	for name, r := range results {
		counts[r.Behavior]++
		testkit.Want(t, slices.Contains(good, r.Behavior) && slices.Contains(goodEnd, r.BehaviorClose),
			"case %s: %s, closed %s", name, r.Behavior, r.BehaviorClose)
	}
	t.Logf("%d cases: %v", len(results), counts)
	if want > 0 && len(results) != want {
		t.Errorf("%d cases, want %d", len(results), want)
	}
}

type autobahnResult struct {
	Behavior      string `json:"behavior"`
	BehaviorClose string `json:"behaviorClose"`
}

// runAutobahn returns what the suite says of each case. Its own exit status says nothing.
func runAutobahn(t *testing.T, url string, cases []string) map[string]autobahnResult {
	t.Helper()
	dir := t.TempDir()
	spec, err := json.Marshal(map[string]any{
		"outdir": dir, "servers": []any{map[string]any{"agent": "cabrank", "url": url}},
		"cases": cases, "exclude-cases": []string{}, "exclude-agent-cases": map[string]any{},
	})
	testkit.Must(t, err)
	file := filepath.Join(dir, "spec.json")
	testkit.Must(t, os.WriteFile(file, spec, 0o600))
	out, err := exec.CommandContext(t.Context(), "../../.deps/autobahn/wstest", "-m", "fuzzingclient", "-s", file).CombinedOutput()
	testkit.Need(t, err == nil, "%v:\n%s", err, out)
	text, err := os.ReadFile(filepath.Join(dir, "index.json"))
	testkit.Need(t, err == nil, "%v:\n%s", err, out)
	var index struct {
		Cabrank map[string]autobahnResult `json:"cabrank"`
	}
	testkit.Must(t, json.Unmarshal(text, &index))
	return index.Cabrank
}
