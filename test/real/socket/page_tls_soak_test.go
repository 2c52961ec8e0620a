//go:build soak

package socket_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// secretPage asks for a page of the port first: a browser shows no certificate with a socket
// that it has not shown there before.
const secretPage = `<!doctype html><script>
const at = "%s"
const say = text => fetch("/said", {method: "POST", body: text})
fetch("https://" + at + "/", {mode: "no-cors", credentials: "include"}).then(() => {
  const ws = new WebSocket("wss://" + at + "/ws", "juggler.1")
  ws.onerror = () => say("no socket")
  ws.onmessage = e => {
    const m = JSON.parse(e.data)
    if (m.type == "welcome") ws.send(JSON.stringify({type: "call", id: 1, uri: "` + workService + `Io", args: {millis: 1}}))
    if (m.type == "res") say(m.error ? JSON.stringify(m.error) : "called")
  }
}, () => say("not let in"))
</script>`

// A browser that has a certificate shows it with its sockets, over wss, and their calls are
// its holder's; without one it has no socket.
func TestPagesWithCertificates(t *testing.T) {
	cert, key, _ := testkit.Certificate(t, t.TempDir(), "alice.test", time.Now().Add(time.Hour))
	log := filepath.Join(t.TempDir(), "access.log")
	for name, want := range map[string]string{"alice.test": "called", "": "not let in"} {
		t.Run(name, func(t *testing.T) {
			var c *harness.Cabrank
			site := harness.NewSite(t, secretPage, func() string { return c.Addr })
			config, _, _ := harness.WithTLS(t, fmt.Sprintf("tls_client: {ca: %s, names: ['*.test'], required: true}\naccess_log.path: %s\n", cert, log))
			c = harness.StartCabrankEnv(t, append(workDescriptors(t), "CABRANK_SOCKET_ORIGIN="+site.Origin), withSockets(t, "--config", config)...)
			c.WaitReady(harness.Patience)
			home := t.TempDir()
			store, profile := filepath.Join(home, ".pki", "nssdb"), filepath.Join(home, "browser", "Default")
			selects := `{"profile":{"content_settings":{"exceptions":{"auto_select_certificate":{"https://` + c.Addr + `,*":{"setting":{"filters":[{}]}}}}}}}`
			testkit.Must(t, errors.Join(os.MkdirAll(store, 0o700), os.MkdirAll(profile, 0o700), os.WriteFile(filepath.Join(profile, "Preferences"), []byte(selects), 0o600)))
			if name != "" {
				keepCertificate(t, store, cert, key)
			}
			site.Show(home)
			site.WantSaid(want)
		})
	}
	testkit.Eventually(t, harness.Patience, "the call in the log", func() bool {
		text, _ := os.ReadFile(log)
		return strings.Contains(string(text), workService+"Io") && strings.Contains(string(text), `"user":"cert:alice.test"`)
	})
}

// keepCertificate has a browser's store know a certificate and its key.
func keepCertificate(t *testing.T, store, cert, key string) {
	t.Helper()
	for _, command := range [][]string{
		{"openssl", "pkcs12", "-export", "-in", cert, "-inkey", key, "-out", store + "/bundle", "-passout", "pass:"},
		{"certutil", "-N", "--empty-password", "-d", "sql:" + store},
		{"pk12util", "-i", store + "/bundle", "-d", "sql:" + store, "-W", ""},
	} {
		harness.StartProcess(t, nil, "/usr/bin/"+command[0], command[1:]...).WantExit(harness.Patience, 0)
	}
}
