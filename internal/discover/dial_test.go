package discover

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/cabrank/cabrank/internal/certs"
	"github.com/cabrank/cabrank/internal/testkit"
)

// secureServer starts an endpoint that speaks TLS with a certificate for a name, which asks
// for those of trusted, unless that is nil.
func secureServer(t *testing.T, folder, name string, until time.Time, trusted *x509.CertPool) *endpoint {
	t.Helper()
	cert, key, _ := testkit.Certificate(t, folder, name, until)
	pair, err := tls.LoadX509KeyPair(cert, key)
	testkit.Must(t, err)
	config := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	if trusted != nil {
		config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, trusted
	}
	return listen(t, "tcp", "127.0.0.1:0", grpc.Creds(credentials.NewTLS(config)))
}

// startSecure starts a roster that goes by a peer.
func startSecure(t *testing.T, p certs.Peer, s *script, upstream string) (*Roster, *board) {
	t.Helper()
	peers, err := certs.NewPeers(p, slog.New(slog.DiscardHandler))
	testkit.Must(t, err)
	b := newBoard()
	o := testOptions(b, upstream)
	o.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		return Dial(ctx, network, address, peers.Config)
	}
	r := newRoster(t, o)
	for _, n := range r.entries {
		if n.source != nil {
			n.source.lookup.resolver = s
		}
	}
	r.Start()
	return r, b
}

// Endpoints that speak TLS get calls once they have shown a certificate for the host that is
// named, or for the name that is asked for, and otherwise none, and the reason is one line.
func TestSecureEndpoints(t *testing.T) {
	testkit.CheckLeaks(t)
	folder, until := t.TempDir(), time.Now().Add(time.Hour)
	file := func(name string) string { return filepath.Join(folder, name) }
	_, _, callers := testkit.Certificate(t, folder, "caller.test", until)
	good := secureServer(t, folder, "localhost", until, nil)
	named := secureServer(t, folder, "w.test", until, nil)
	old := secureServer(t, folder, "old.test", time.Now().Add(-time.Minute), nil)
	strict := secureServer(t, folder, "strict.test", until, callers)
	plain := listen(t, "tcp", "127.0.0.1:0")
	page := httptest.NewUnstartedServer(http.NotFoundHandler())
	page.Config.ErrorLog = log.New(io.Discard, "", 0)
	page.StartTLS()
	defer page.Close()
	shows := certs.Peer{CA: file("strict.test.crt"), Cert: file("caller.test.crt"), Key: file("caller.test.key")}
	for what, tc := range map[string]struct {
		at   net.Listener
		host string
		peer certs.Peer
		want string // why it gets none; "": it does
	}{
		"host":                 {good, "localhost", certs.Peer{CA: file("localhost.crt")}, ""},
		"address":              {good, "127.0.0.1", certs.Peer{CA: file("localhost.crt")}, ""},
		"name":                 {named, "127.0.0.1", certs.Peer{CA: file("w.test.crt"), Name: "w.test"}, ""},
		"looked up":            {named, "dns:w.test", certs.Peer{CA: file("w.test.crt")}, ""},
		"another name":         {good, "localhost", certs.Peer{CA: file("localhost.crt"), Name: "b.test"}, "certificate is valid for localhost, not b.test"},
		"another, looked up":   {good, "dns:w.test", certs.Peer{CA: file("localhost.crt")}, "certificate is valid for localhost, not w.test"},
		"unknown":              {good, "localhost", certs.Peer{CA: file("w.test.crt")}, "certificate signed by unknown authority"},
		"roots of the system":  {good, "localhost", certs.Peer{}, "certificate signed by unknown authority"},
		"expired":              {old, "127.0.0.1", certs.Peer{CA: file("old.test.crt")}, "certificate has expired"},
		"no TLS":               {plain, "127.0.0.1", certs.Peer{}, "it does not speak TLS: leave tls: out"},
		"no HTTP/2":            {page.Listener, "127.0.0.1", pagePeer(t, folder, page), "does not agree on HTTP/2 (ALPN h2)"},
		"a certificate, none":  {strict, "127.0.0.1", certs.Peer{CA: file("strict.test.crt")}, "tls: certificate required"},
		"a certificate, shown": {strict, "127.0.0.1", shows, ""},
	} {
		t.Run(what, func(t *testing.T) {
			port := strconv.Itoa(tc.at.Addr().(*net.TCPAddr).Port)
			s := newScript()
			s.say("A w.test.", time.Hour, "127.0.0.1")
			upstream := "tls:" + tc.host + ":" + port
			r, b := startSecure(t, tc.peer, s, upstream)
			name, address := upstream, tc.host+":"+port
			if host, looked := strings.CutPrefix(tc.host, "dns:"); looked {
				address = "127.0.0.1:" + port + "/" + host
				name = "tls:" + address
			}
			if tc.want == "" {
				b.await(t, name, "up at tls "+address)
				return
			}
			testkit.Eventually(t, 20*time.Second, "the reason", func() bool { return len(r.Endpoints()) == 1 && r.Endpoints()[0].Reason != "" })
			if e := r.Endpoints()[0]; e.Name != name || !strings.Contains(e.Reason, tc.want) || strings.Contains(e.Reason, "\n") {
				t.Errorf("%s: %s", e.Name, e.Reason)
			}
			b.wantTold(t, name, "add")
		})
	}
}

// pagePeer trusts a server of net/http/httptest.
func pagePeer(t *testing.T, folder string, page *httptest.Server) certs.Peer {
	t.Helper()
	return certs.Peer{CA: testkit.Trust(t, folder, "page", page.Certificate()), Name: "example.com"}
}

// What hangs in the middle of a handshake ends with the context of who connects.
func TestSilentHandshake(t *testing.T) {
	ln := testkit.Listen(t)
	defer ln.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if nc, err := Dial(ctx, secureNetwork, ln.Addr().String(), func(string) *tls.Config { return &tls.Config{ServerName: "w.test", MinVersion: tls.VersionTLS12} }); err == nil || ctx.Err() == nil {
		t.Errorf("%v, %v", nc, err)
	}
}
