//go:build soak

package languages_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"google.golang.org/grpc"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// Callers of all languages are served over TLS, and told apart from those without.
func TestCallersOverTLS(t *testing.T) {
	config, cert, trust := harness.WithTLS(t, "socket.path: /ws\n")
	c := harness.StartLangCabrankEnv(t, "go", []string{"CABRANK_STREAM_SLOTS=8"}, "--workers", "1", "--slots", "8", "--config", config)
	for name, command := range secureCallers(harness.Root(t)) {
		t.Run(name, func(t *testing.T) {
			harness.StartLangProcess(t, nil, append(command, c.Addr, cert)).WantExit(harness.LangBound, 0)
		})
	}
	t.Run("curl", func(t *testing.T) {
		p := harness.StartProcess(t, nil, "/usr/bin/curl", "--silent", "--show-error", "--cacert", cert, "https://"+c.Addr+"/")
		p.WantExit(harness.LangBound, 0, "gRPC")
		p = harness.StartProcess(t, nil, "/usr/bin/curl", "--silent", "--include", "http://"+c.Addr+"/")
		if p.ExitCode(harness.LangBound); !strings.Contains(p.Output(), "this port speaks TLS") {
			t.Errorf("without TLS: %s", p.Output())
		}
	})
	t.Run("websocket", func(t *testing.T) {
		dialer := websocket.Dialer{Subprotocols: []string{"juggler.1"}, TLSClientConfig: &tls.Config{RootCAs: trust, MinVersion: tls.VersionTLS12}}
		ws, response, err := dialer.Dial("wss://"+c.Addr+"/ws", nil)
		testkit.Must(t, err)
		response.Body.Close()
		defer ws.Close()
		_, text, err := ws.ReadMessage()
		testkit.Want(t, err == nil && strings.Contains(string(text), "welcome"), "%s, %v", text, err)
	})
	c.WaitLog(harness.Patience, "a caller began without TLS")
	c.Stop()
}

// No call and no stream fails while certificates change, the configuration is read again and
// a new cabrank takes over, over connections that are there; who connects gets the new
// certificate within a second or so.
func TestChangesUnderLoadOverTLS(t *testing.T) {
	config, cert, trust := harness.WithTLS(t, "")
	freshCert, freshKey, fresh := testkit.Certificate(t, t.TempDir(), "port.test", time.Now().Add(2*time.Hour))
	text, err := os.ReadFile(freshCert)
	if err != nil || !trust.AppendCertsFromPEM(text) { // who connects again meets either
		t.Fatal(err)
	}
	m := harness.StartManaged(t, []string{"CABRANK_STREAM_SLOTS=8"}, nil, slices.Concat(
		[]string{"--config", config, "--transport", "unix", "--workers", "1", "--slots", "8", "--"}, harness.FaultWorker(t))...)
	m.WaitReady(harness.Patience)
	upload := strings.Repeat("x", 200_000)
	var calls []harness.LoopCall
	for i := range 6 {
		conn := harness.DialTLS(t, m.Addr, trust)
		calls = append(calls, func(ctx context.Context) error {
			if i%3 == 0 {
				return harness.Upload(ctx, conn, upload)
			}
			_, err := workpb.NewWorkClient(conn).Io(ctx, &workpb.IoRequest{Millis: 5})
			return err
		})
	}
	load := harness.StartLoop(t, 1, calls...)
	load.WaitMore(200)
	for _, path := range []string{freshCert, freshKey} {
		testkit.Must(t, os.Rename(path, filepath.Join(filepath.Dir(cert), filepath.Base(path))))
	}
	began := time.Now()
	testkit.Eventually(t, harness.Patience, "the new certificate", func() bool {
		conn, err := tls.Dial("tcp", m.Addr, &tls.Config{RootCAs: fresh, ServerName: "port.test", MinVersion: tls.VersionTLS12})
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	t.Logf("a new certificate is served after %v", time.Since(began))
	load.WaitMore(200)
	m.SignalTo(m.Main, syscall.SIGHUP)
	m.WaitLog(harness.Patience, "configuration reloaded")
	load.WaitMore(200)
	m.Upgrade()
	load.WaitMore(200)
	load.WantNoFailure()
	left := m.Metric("cabrank_tls_certificate_expires_seconds", "cert", cert)
	testkit.Want(t, left >= 5400 && left <= 7200, "the certificate is said to expire in %v s", left)
	m.End()
}

// One cabrank calls another over TLS, which knows it by its certificate and tells its workers;
// without one it does not take part, and says why.
func TestUpstreamsOverTLS(t *testing.T) {
	folder, until := t.TempDir(), time.Now().Add(time.Hour)
	mine, key, _ := testkit.Certificate(t, folder, "edge.test", until)
	config, cert, _ := harness.WithTLS(t, fmt.Sprintf("tls_client: {ca: %s, names: ['*.test'], required: true}\naccess_log.path: %s\n", mine, filepath.Join(folder, "access.log")))
	inner := harness.StartLangCabrankEnv(t, "go", nil, "--workers", "1", "--slots", "8", "--config", config)
	edge := func(more string) *harness.Cabrank {
		text := fmt.Sprintf("upstreams: ['tls:%s']\nupstream_tls: {ca: %s%s}\n", inner.Addr, cert, more)
		config := harness.WriteFile(t, "cabrank.yml", text)
		return harness.StartCabrank(t, "--config", config)
	}
	good := edge(fmt.Sprintf(", cert: %s, key: %s", mine, key))
	conn := harness.Dial(t, good.Addr)
	for range 100 {
		ctx, cancel := context.WithTimeout(t.Context(), harness.Patience)
		_, err := workpb.NewWorkClient(conn).Io(ctx, &workpb.IoRequest{Millis: 1}, grpc.WaitForReady(true))
		testkit.Must(t, err)
		cancel()
	}
	good.Stop()
	bad := edge("")
	bad.WaitLog(harness.Patience, "certificate")
	bad.Stop()
	inner.Stop()
	text, err := os.ReadFile(filepath.Join(folder, "access.log"))
	known := 0
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, workpb.Work_Io_FullMethodName) && strings.Contains(line, `"user":"cert:edge.test"`) {
			known++
		}
	}
	testkit.Want(t, err == nil && known == 100, "%d calls are the edge's, want 100; %v", known, err)
}

// calledBy counts the finished calls of who is known by a name.
func calledBy(t *testing.T, log, name string) (calls int) {
	t.Helper()
	text := testkit.ReadFile(t, log)
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
		text := testkit.ReadFile(t, file(name))
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
				code := p.ExitCode(harness.LangBound)
				testkit.Want(t, (code == 0) == serves, "%q: status %d: %s", who, code, p.Output())
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
