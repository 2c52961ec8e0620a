//go:build soak

package languages_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// calledBy counts the finished calls of who is known by a name.
func calledBy(t *testing.T, log, name string) (calls int) {
	t.Helper()
	text, err := os.ReadFile(log)
	testkit.Must(t, err)
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, workpb.Work_Io_FullMethodName) && strings.Contains(line, fmt.Sprintf(`"user":"cert:%s"`, name)) {
			calls++
		}
	}
	return calls
}

// Callers of all languages are known by the certificates that they show; who shows none, one
// of another CA or one that has expired is not served.
func TestClientCertificates(t *testing.T) {
	folder, until := t.TempDir(), time.Now().Add(time.Hour)
	file := func(name string) string { return filepath.Join(folder, name) }
	testkit.Certificate(t, folder, "alice.test", until)
	testkit.Certificate(t, folder, "mallory.test", until)
	testkit.Certificate(t, folder, "old.test", time.Now().Add(-time.Minute))
	var authorities []byte
	for _, name := range []string{"alice.test.crt", "old.test.crt"} {
		text, err := os.ReadFile(file(name))
		testkit.Must(t, err)
		authorities = append(authorities, text...)
	}
	testkit.Must(t, os.WriteFile(file("ca.pem"), authorities, 0o600))
	config, server, _ := harness.WithTLS(t, fmt.Sprintf("tls_client: {ca: %s, names: ['*.test'], required: true}\naccess_log.path: %s\n", file("ca.pem"), file("access.log")))
	c := harness.StartLangCabrankEnv(t, "go", nil, "--workers", "1", "--slots", "8", "--config", config)
	for name, command := range secureCallers(harness.Root(t)) {
		t.Run(name, func(t *testing.T) {
			before := calledBy(t, file("access.log"), "alice.test")
			for who, serves := range map[string]bool{"alice.test": true, "mallory.test": false, "old.test": false, "": false} {
				all := append(append([]string(nil), command...), c.Addr, server)
				if who != "" {
					all = append(all, file(who+".crt"), file(who+".key"))
				}
				p := harness.StartLangProcess(t, nil, all)
				if code := p.ExitCode(harness.LangBound); (code == 0) != serves {
					t.Errorf("%q: status %d: %s", who, code, p.Output())
				}
			}
			testkit.Eventually(t, harness.Patience, "its call in the log", func() bool { return calledBy(t, file("access.log"), "alice.test") == before+1 })
		})
	}
	c.WaitLog(harness.Patience, "a caller's TLS handshake failed")
	c.Stop()
}

// secureCallers make a call over TLS. Each is given the address, the server's certificate, and
// what it shows, if anything: a certificate and its key.
func secureCallers(root string) map[string][]string {
	const method = workpb.Work_Io_FullMethodName
	return map[string][]string{
		"grpcio": {"python3", "-c", "import sys, grpc\n" +
			"at, *files = sys.argv[1:]\n" +
			"ca, cert, key = [open(f, 'rb').read() for f in files] + [None] * (3 - len(files))\n" +
			"c = grpc.secure_channel(at, grpc.ssl_channel_credentials(ca, key, cert))\n" +
			"assert c.unary_unary('" + method + "')(b'', timeout=20) is not None"},
		"ruby": {"ruby", "-e", "require 'grpc'\n" +
			"at, *files = ARGV\n" +
			"ca, cert, key = files.map { |f| File.read(f) }\n" +
			"s = GRPC::ClientStub.new(at, key ? GRPC::Core::ChannelCredentials.new(ca, key, cert) : GRPC::Core::ChannelCredentials.new(ca))\n" +
			"s.request_response('" + method + "', '', proc { |x| x }, proc { |x| x }, deadline: Time.now + 20)", "--"},
		"grpc-js": {"node", "-e", "const grpc = require('" + root + "/examples/node/node_modules/@grpc/grpc-js');\n" +
			"const [at, ...files] = process.argv.slice(1);\n" +
			"const [ca, cert, key] = files.map((f) => require('fs').readFileSync(f));\n" +
			"const c = new grpc.Client(at, grpc.credentials.createSsl(ca, key || null, cert || null));\n" +
			"c.makeUnaryRequest('" + method + "', (x) => x, (x) => x, Buffer.alloc(0), { deadline: Date.now() + 20000 }, (e) => process.exit(e ? 1 : 0));"},
		"grpcurl": {"bash", "-c", "exec " + root + "/.tools/grpcurl -max-time 20 -cacert $1 ${2:+-cert $2 -key $3}" +
			" -import-path " + root + "/proto -proto cabrank/example/v1/work.proto $0 " + strings.TrimPrefix(method, "/")},
	}
}
