//go:build real || soak

package workers_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// A worker that does not speak HTTP/2 is told of in words of Cabrank's own, and every
// line says the same: what a process says while it is killed is no reason.
func TestWorkerThatSpeaksSomethingElse(t *testing.T) { //nolint:tparallel // beside each other, not beside tests that are judged by their time
	secure := `import os, socket, ssl, subprocess, sys
run = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=x", "-keyout", sys.argv[1], "-out", sys.argv[1] + ".crt"]
subprocess.run(run, check=True, capture_output=True)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1] + ".crt", sys.argv[1])
server = socket.create_server(("127.0.0.1", int(os.environ["PORT"])))
while True:
    conn, _ = server.accept()
    try:
        context.wrap_socket(conn, server_side=True).close()
    except OSError:
        conn.close()`
	for want, worker := range map[string][]string{
		"it speaks HTTP/1; ": {"python3", "-m", "http.server", "--bind", "{host}", "{port}"},
		"it speaks TLS; ":    {"python3", "-c", secure, t.TempDir() + "/key"},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			args := slices.Concat([]string{"--workers", "1", "--boot-timeout", "8s", "--"}, worker)
			c := harness.StartCabrank(t, args...)
			c.Wait(harness.Patience, "the end of the worker", func() bool { return len(c.LogLines("worker ended")) > 0 })
			for msg, key := range map[string]string{"worker not ready yet": "reason", "worker killed before it was ready": "reason", "worker ended": "how"} {
				for _, line := range c.LogLines(msg) {
					reason := strings.TrimPrefix(line.Text(key), "not ready: ")
					testkit.Want(t, strings.HasPrefix(reason, want), "%s: %q, want %q", msg, reason, want)
				}
			}
		})
	}
}
