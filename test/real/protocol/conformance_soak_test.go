//go:build soak

package protocol_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/cabrank/cabrank/test/real/harness"
)

// suiteBound is how long the cases of a mode may take: a minute on a machine that does
// nothing else.
const suiteBound = 10 * time.Minute

// suiteConfig tells Connect's suite which cases there are: all that pass over HTTP/2, in
// clear and over TLS.
const suiteConfig = `
features:
  versions: [HTTP_VERSION_2]
  protocols: [PROTOCOL_CONNECT, PROTOCOL_GRPC, PROTOCOL_GRPC_WEB]
  codecs: [CODEC_PROTO, CODEC_JSON]
  compressions: [COMPRESSION_IDENTITY, COMPRESSION_GZIP]
  stream_types: [STREAM_TYPE_UNARY, STREAM_TYPE_CLIENT_STREAM, STREAM_TYPE_SERVER_STREAM, STREAM_TYPE_HALF_DUPLEX_BIDI_STREAM, STREAM_TYPE_FULL_DUPLEX_BIDI_STREAM]
  supports_h2c: true
  supports_tls: true
  supports_tls_client_certs: %v
  supports_trailers: true
  supports_connect_get: true
  supports_message_receive_limit: true
`

var suiteResult = regexp.MustCompile(`Total cases: (\d+)\s+(\d+) passed, (\d+) failed`)

// Every case of Connect's suite over HTTP/2 passes through cabrank as it does without it:
// gRPC, gRPC-Web and Connect, in clear, over TLS, and with certificates of callers. They are
// counted, so that none is lost; `make conformance-doors` prints the counts.
func TestConformanceOfDoors(t *testing.T) {
	suite := filepath.Join(harness.Root(t), ".deps", "conformance")
	for _, mode := range []struct {
		name  string
		certs bool
		cases string
	}{
		{"h2-any", false, "2412"},
		{"h2-any-certs", true, "2424"},
	} {
		t.Run(mode.name, func(t *testing.T) {
			config := filepath.Join(t.TempDir(), "suite.yaml")
			if err := os.WriteFile(config, fmt.Appendf(nil, suiteConfig, mode.certs), 0o600); err != nil {
				t.Fatal(err)
			}
			p := harness.StartProcess(t, nil, harness.Built(t, filepath.Join(suite, "connectconformance"), "scripts/install-deps.sh conformance"),
				"--mode", "server", "--conf", config, "--", harness.OwnBinary(t), relayedRole,
				harness.CabrankBinary(t), filepath.Join(suite, "referenceserver"), t.TempDir())
			code := p.ExitCode(suiteBound)
			said := p.Output() + p.Log()
			result := suiteResult.FindStringSubmatch(said)
			if result == nil {
				t.Fatalf("status %d: %s", code, said)
			}
			fmt.Fprintf(t.Output(), "%s %s/%s\n", mode.name, result[2], result[1])
			if code != 0 || result[1] != mode.cases || result[2] != mode.cases {
				t.Errorf("status %d, want %s cases: %s", code, mode.cases, said)
			}
		})
	}
}
