//go:build soak

package protocol_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/cabrank/cabrank/test/real/harness"
)

const (
	// suiteBound is how long all cases may take: a minute on a machine that does nothing else.
	suiteBound = 10 * time.Minute
	// leastCases is how many cases there are, without TLS.
	leastCases = 200
)

// conformance is what cabrank passes on: gRPC over HTTP/2.
const conformance = `
features:
  versions: [HTTP_VERSION_2]
  protocols: [PROTOCOL_GRPC]
  codecs: [CODEC_PROTO, CODEC_JSON]
  compressions: [COMPRESSION_IDENTITY, COMPRESSION_GZIP]
  stream_types: [STREAM_TYPE_UNARY, STREAM_TYPE_CLIENT_STREAM, STREAM_TYPE_SERVER_STREAM, STREAM_TYPE_HALF_DUPLEX_BIDI_STREAM, STREAM_TYPE_FULL_DUPLEX_BIDI_STREAM]
  supports_h2c: true
  supports_tls: %v
  supports_tls_client_certs: false
  supports_trailers: true
  supports_message_receive_limit: true
`

var suiteResult = regexp.MustCompile(`Total cases: (\d+)\s+(\d+) passed, (\d+) failed`)

// Every case of Connect's suite for gRPC over HTTP/2 passes through cabrank, with TLS and
// without, as it does without cabrank.
func TestConnectConformance(t *testing.T) {
	suite := filepath.Join(harness.Root(t), ".deps", "conformance")
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprintf("tls %v", secure), func(t *testing.T) {
			config := filepath.Join(t.TempDir(), "suite.yaml")
			if err := os.WriteFile(config, fmt.Appendf(nil, conformance, secure), 0o600); err != nil {
				t.Fatal(err)
			}
			p := harness.StartProcess(t, nil, harness.Built(t, filepath.Join(suite, "connectconformance"), "scripts/install-deps.sh conformance"),
				"--mode", "server", "--conf", config, "--", harness.OwnBinary(t), relayedRole,
				harness.CabrankBinary(t), filepath.Join(suite, "referenceserver"), t.TempDir())
			code := p.ExitCode(suiteBound)
			result := suiteResult.FindStringSubmatch(p.Output() + p.Log())
			if code != 0 || result == nil || result[1] != result[2] {
				t.Fatalf("status %d: %s%s", code, p.Output(), p.Log())
			}
			if n, _ := strconv.Atoi(result[1]); n < leastCases {
				t.Errorf("%d cases", n)
			}
			t.Log(result[0])
		})
	}
}
