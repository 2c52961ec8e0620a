//go:build real || soak

package protocol_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/plain"
	"github.com/cabrank/cabrank/test/real/harness"
)

// h2specCases is how many cases h2spec 2.2.1 has. They are counted because its
// exit code is 0 whatever has failed.
const h2specCases = 145

// h2specBound is how long all cases may take: each of them waits at most a few
// times for 2 s.
const h2specBound = 5 * time.Minute

// h2specSummary matches what h2spec prints last.
var h2specSummary = regexp.MustCompile(`(?m)^(\d+) tests, (\d+) passed, (\d+) skipped, (\d+) failed$`)

// RFC 9113, RFC 7541: the engine in the server role keeps every rule that
// h2spec knows.
func TestH2SpecEngine(t *testing.T) {
	runH2Spec(t, plain.Start(t).Addr, "/")
}

// The same through the relay to a plain HTTP/2 server on the same engine.
func TestH2SpecRelay(t *testing.T) {
	c := startPassing(t, plain.Start(t).Addr)
	runH2Spec(t, c.Addr, "/call")
	c.Stop()
}

// And to nobody: the page at / is served by Cabrank itself, as a stream that is no
// call.
func TestH2SpecPage(t *testing.T) {
	c := harness.StartCabrank(t, "--upstream", plain.Start(t).Addr, "--probes", "off", "--metrics", "off")
	runH2Spec(t, c.Addr, "/")
}

// And to one that is not ours: net/http. What passes here and not above, or
// the reverse, is a fault of the engine that it has in both roles.
func TestH2SpecRelayNetHTTP(t *testing.T) {
	c := startPassing(t, startNetHTTP(t))
	runH2Spec(t, c.Addr, "/call")
	c.Stop()
}

// startPassing starts cabrank before a server that gets what is no call of gRPC, too.
func startPassing(t *testing.T, upstream string) *harness.Cabrank {
	t.Helper()
	return harness.StartCabrankEnv(t, []string{"CABRANK_SPEAK=any"}, "--upstream", upstream, "--probes", "off", "--metrics", "off")
}

// startNetHTTP starts a plaintext HTTP/2 server of the standard library and
// returns its address.
func startNetHTTP(t *testing.T) string {
	t.Helper()
	ln := testkit.Listen(t)
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			// To the end: what comes behind an answer concerns nobody.
			io.Copy(io.Discard, r.Body)
			w.Write([]byte(plain.Body))
		}),
		Protocols: new(http.Protocols),
	}
	server.Protocols.SetUnencryptedHTTP2(true)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ln) }()
	t.Cleanup(func() {
		server.Close()
		<-ended
	})
	return ln.Addr().String()
}

// runH2Spec runs all cases against a path at an address. The line that it prints in the
// end is the one that `make h2spec` shows.
func runH2Spec(t *testing.T, addr, path string) {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	testkit.Must(t, err)
	suite := harness.StartProcess(t, nil, harness.Tool(t, "h2spec"), "-h", host, "-p", port, "-P", path, "-o", "2")
	suite.ExitCode(h2specBound)
	got := h2specSummary.FindString(suite.Output())
	if want := fmt.Sprintf("%d tests, %[1]d passed, 0 skipped, 0 failed", h2specCases); got != want {
		_, failures, _ := strings.Cut(suite.Output(), "Failures:")
		t.Fatalf("h2spec: %q, want %q\n%s", got, want, failures)
	}
	fmt.Fprintf(t.Output(), "%d tests, %[1]d passed\n", h2specCases)
}
