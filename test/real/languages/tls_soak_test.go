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
		if _, text, err := ws.ReadMessage(); err != nil || !strings.Contains(string(text), "welcome") {
			t.Errorf("%s, %v", text, err)
		}
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
	if left := m.Metric("cabrank_tls_certificate_expires_seconds", "cert", cert); left < 5400 || left > 7200 {
		t.Errorf("the certificate is said to expire in %v s", left)
	}
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
		if _, err := workpb.NewWorkClient(conn).Io(ctx, &workpb.IoRequest{Millis: 1}, grpc.WaitForReady(true)); err != nil {
			t.Fatal(err)
		}
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
	if err != nil || known != 100 {
		t.Errorf("%d calls are the edge's, want 100; %v", known, err)
	}
}
