//go:build real || soak

package protocol_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// suiteBound is how long the cases of a mode may take: 2 to 10 s on a machine that does
// nothing else.
const suiteBound = 2 * time.Minute

// suiteConfig tells Connect's suite which cases there are.
const suiteConfig = `
features:
  versions: [%s]
  protocols: [%s]
  codecs: [%s]
  compressions: [COMPRESSION_IDENTITY, COMPRESSION_GZIP]
  stream_types: [STREAM_TYPE_UNARY, STREAM_TYPE_CLIENT_STREAM, STREAM_TYPE_SERVER_STREAM, STREAM_TYPE_HALF_DUPLEX_BIDI_STREAM%s]
  supports_half_duplex_bidi_over_http1: %v
  supports_h2c: %v
  supports_tls: %v
  supports_tls_client_certs: %v
  supports_trailers: true
  supports_connect_get: true
  supports_message_receive_limit: true
`

const (
	allProtocols = "PROTOCOL_CONNECT, PROTOCOL_GRPC, PROTOCOL_GRPC_WEB"
	overBoth     = "HTTP_VERSION_1, HTTP_VERSION_2"
	inBoth       = "CODEC_PROTO, CODEC_JSON"
	inProtobuf   = "CODEC_PROTO"
)

// suiteMode is one way through cabrank.
type suiteMode struct {
	name                        string
	versions, protocols, codecs string
	tls, certs                  bool
	server, options             string // behind cabrank, and what its configuration says
	cases                       string
	short                       bool     // of `make test`, too
	failing                     []string // cases that have to fail, see docs/conformance.md
}

// config is what the suite reads.
func (m *suiteMode) config() []byte {
	fullDuplex := ""
	http2 := strings.Contains(m.versions, "VERSION_2")
	if http2 {
		fullDuplex = ", STREAM_TYPE_FULL_DUPLEX_BIDI_STREAM"
	}
	return fmt.Appendf(nil, suiteConfig, m.versions, m.protocols, m.codecs, fullDuplex, strings.Contains(m.versions, "VERSION_1"), http2, m.tls, m.certs)
}

// suiteModes are all of them. A server that speaks no gRPC-Web and no Connect is called in
// these by way of cabrank's translation.
func suiteModes(description string) []suiteMode {
	const passOn, translated = "speak: any\n", "grpcserver"
	described := "descriptors: [" + description + "]\n"
	cardinality := func(suite string) []string {
		return []string{suite + "/**/multiple-requests", suite + "/**/no-request"}
	}
	get := []string{"Connect with GET/**"}
	return []suiteMode{
		{"h2-any", "HTTP_VERSION_2", allProtocols, inBoth, true, false, "referenceserver", passOn, "2412", false, nil},
		{"h2-any-certs", "HTTP_VERSION_2", allProtocols, inBoth, true, true, "referenceserver", passOn, "2424", false, nil},
		{"h1-any", "HTTP_VERSION_1", "PROTOCOL_CONNECT, PROTOCOL_GRPC_WEB", inBoth, true, false, "referenceserver", passOn, "1388", false, nil},
		{"h1-any-certs", "HTTP_VERSION_1", "PROTOCOL_CONNECT, PROTOCOL_GRPC_WEB", inBoth, true, true, "referenceserver", passOn, "1396", false, nil},
		{"grpc", "HTTP_VERSION_2", "PROTOCOL_GRPC", inProtobuf, false, false, translated, "", "374", true, cardinality("gRPC Unexpected Requests")},
		{"grpc-web", overBoth, "PROTOCOL_GRPC_WEB", inProtobuf, false, false, translated, "", "368", true, cardinality("gRPC-Web Unexpected Requests")},
		{"connect-proto", overBoth, "PROTOCOL_CONNECT", inProtobuf, false, false, translated, "", "440", false,
			append(append(cardinality("Connect Unexpected Requests"), get...), "Connect Unexpected Requests/**/unexpected-uri")},
		{"connect-proto-described", overBoth, "PROTOCOL_CONNECT", inProtobuf, false, false, translated, described, "440", true, get},
		{"connect-json", overBoth, "PROTOCOL_CONNECT", "CODEC_JSON", false, false, translated, described, "368", true, get},
	}
}

var suiteResult = regexp.MustCompile(`Total cases: (\d+)\s+(\d+) passed, (\d+) failed(?: as expected)?`)

// Connect's suite passes through cabrank: as it does without it where it is passed on, and
// translated but for the cases that no server of gRPC can pass. All are counted, so that none
// is lost, and those that fail have to; `make conformance-doors` prints the counts.
func TestConformanceOfDoors(t *testing.T) {
	for _, mode := range suiteModes(filepath.Join(suiteFolder(t), "service.pb")) {
		t.Run(mode.name, func(t *testing.T) { mode.hold(t) })
	}
}

// The same for `make test`: what comes by gRPC, gRPC-Web, Connect and JSON to a server that
// speaks gRPC alone.
func TestConformanceInShort(t *testing.T) {
	for _, mode := range suiteModes(filepath.Join(suiteFolder(t), "service.pb")) {
		if mode.short {
			mode.hold(t)
		}
	}
}

func suiteFolder(t *testing.T) string {
	t.Helper()
	return filepath.Join(harness.Root(t), ".deps", "conformance")
}

// hold runs the cases of a mode.
func (m *suiteMode) hold(t *testing.T) {
	t.Helper()
	suite, folder := suiteFolder(t), t.TempDir()
	runner := harness.Built(t, filepath.Join(suite, "connectconformance"), "scripts/install-deps.sh conformance")
	config := filepath.Join(folder, "suite.yaml")
	testkit.Must(t, os.WriteFile(config, m.config(), 0o600))
	args := []string{"--mode", "server", "--conf", config}
	for _, name := range m.failing {
		args = append(args, "--known-failing", name)
	}
	args = append(args, "--", harness.OwnBinary(t), relayedRole, harness.CabrankBinary(t), filepath.Join(suite, m.server), folder, m.options)
	p := harness.StartProcess(t, nil, runner, args...)
	code := p.ExitCode(suiteBound)
	said := p.Output() + p.Log()
	result := suiteResult.FindStringSubmatch(said)
	testkit.Need(t, result != nil, "%s: status %d: %s", m.name, code, said)
	fmt.Fprintf(t.Output(), "%s %s/%s\n", m.name, result[2], result[1])
	testkit.Want(t, code == 0 && result[1] == m.cases, "%s: status %d, want %s cases: %s", m.name, code, m.cases, said)
}
