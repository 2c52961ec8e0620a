package page

import (
	"context"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

const token = "LETMEIN"

// A socket of a cabrank that says what it was asked.
func socket(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	on, err := net.Listen("unix", path)
	testkit.Must(t, err)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // what was cut is told of by its length
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, r.Method+" "+r.Host+r.URL.Path+" "+string(body)+" "+r.Header.Get("Authorization"))
	})}
	go server.Serve(on) // ends with Close
	t.Cleanup(func() { _ = server.Close() })
	return path
}

// started serves the page until the test ends, and returns its address, and what ends when it does.
func started(t *testing.T, o Options) (addr string, ended <-chan struct{}) {
	t.Helper()
	on := testkit.Listen(t)
	ctx, stop := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		defer close(over)
		err := New(o).Serve(ctx, on)
		testkit.Want(t, err == nil, "%v", err)
	}()
	t.Cleanup(func() { stop(); <-over })
	return on.Addr().String(), over
}

// ask makes a request with header fields NAME: VALUE, and returns status and body.
func ask(t *testing.T, method, addr, path, body string, fields ...string) (int, string, http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+addr+path, strings.NewReader(body))
	testkit.Must(t, err)
	for _, field := range fields {
		name, value, _ := strings.Cut(field, ": ")
		if r.Header.Set(name, value); name == "Host" {
			r.Host = value
		}
	}
	reply, err := http.DefaultClient.Do(r)
	testkit.Must(t, err)
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	testkit.Must(t, err)
	return reply.StatusCode, string(text), reply.Header
}

// Who has the token asks the control socket, from a page of this server or from none. Nobody
// else does, whichever name or page leads here.
func TestWhoMayAsk(t *testing.T) {
	addr, _ := started(t, Options{Socket: socket(t), Token: token})
	_, port, _ := net.SplitHostPort(addr)
	const key = "Authorization: Bearer " + token
	for _, c := range []struct {
		name, method, path string
		fields             []string
		status             int
		says               string
	}{
		{"live", "GET", "/v1/live", []string{key}, 200, "GET cabrank/v1/live  "},
		{"an order", "POST", "/v1/scale", []string{key, "Origin: http://" + addr}, 200, "POST cabrank/v1/scale {} "},
		{"by another name of this machine", "GET", "/v1/status", []string{key, "Host: localhost:" + port}, 200, "GET cabrank/v1/status"},
		{"by IPv6", "GET", "/v1/events", []string{key, "Host: [::1]:" + port}, 200, "GET cabrank/v1/events"},
		{"without a token", "GET", "/v1/live", nil, 401, "the token is missing"},
		{"with another token", "GET", "/v1/live", []string{key + "X"}, 401, "the token is missing"},
		{"with a password", "GET", "/v1/live", []string{"Authorization: Basic " + token}, 401, "the token is missing"},
		{"by a name that leads here", "GET", "/v1/live", []string{key, "Host: evil.example:" + port}, 403, "only localhost"},
		{"the page by such a name", "GET", "/", []string{"Host: evil.example"}, 403, "only localhost"},
		{"from another page", "POST", "/v1/restart", []string{key, "Origin: https://evil.example"}, 403, "only the page's own"},
		{"from a sandbox", "POST", "/v1/restart", []string{key, "Origin: null"}, 403, "only the page's own"},
		{"what the page does not do", "POST", "/v1/stop", []string{key}, 404, ""},
		{"another path", "GET", "/v1/../v1/live/x", []string{key}, 404, ""},
		{"an order by GET", "GET", "/v1/restart", []string{key}, 405, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := ""
			if c.method == "POST" {
				body = "{}"
			}
			status, text, _ := ask(t, c.method, addr, c.path, body, c.fields...)
			testkit.Want(t, status == c.status && strings.Contains(text, c.says), "%d %q, want %d with %q", status, text, c.status, c.says)
			testkit.Want(t, !strings.Contains(text, token), "the token went on: %q", text)
		})
	}
}

// The page is one file that may ask its own server alone, and has no token in it.
func TestPage(t *testing.T) {
	addr, _ := started(t, Options{Socket: socket(t), Token: token})
	status, text, header := ask(t, "GET", addr, "/", "")
	if status != 200 || !strings.Contains(text, "<title>cabrank</title>") || strings.Contains(text, token) || strings.Contains(text, "://") && !strings.Contains(text, "http://www.w3.org/2000/svg") {
		t.Errorf("%d, %d bytes", status, len(text))
	}
	policy := header.Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'none'", "connect-src 'self'", "script-src 'sha256-", "style-src 'sha256-", "frame-ancestors 'none'"} {
		testkit.Says(t, policy, part)
	}
	testkit.Want(t, header.Get("Cache-Control") == "no-store", "cached: %v", header)
}

// A page that is read-only gives no orders, and says what it is.
func TestReadOnly(t *testing.T) {
	addr, _ := started(t, Options{Socket: socket(t), Token: token, ReadOnly: true})
	const key = "Authorization: Bearer " + token
	if status, text, _ := ask(t, "POST", addr, "/v1/restart", "{}", key); status != 403 || !strings.Contains(text, "--read-only") {
		t.Errorf("%d %q", status, text)
	}
	if status, _, header := ask(t, "GET", addr, "/v1/status", "", key); status != 200 || header.Get("X-Read-Only") != "1" {
		t.Errorf("%d %v", status, header)
	}
}

// A cabrank that does not answer is told of, and an order that is too long is refused.
func TestTrouble(t *testing.T) {
	const key = "Authorization: Bearer " + token
	addr, _ := started(t, Options{Socket: filepath.Join(t.TempDir(), "nobody"), Token: token})
	if status, text, _ := ask(t, "GET", addr, "/v1/live", "", key); status != 502 || !strings.Contains(text, "cabrank does not answer") {
		t.Errorf("%d %q", status, text)
	}
	addr, _ = started(t, Options{Socket: socket(t), Token: token})
	if status, text, _ := ask(t, "POST", addr, "/v1/scale", strings.Repeat("x", mostBody+1), key); status != 413 || !strings.Contains(text, "at most") {
		t.Errorf("%d %.80q", status, text)
	}
}

// The page ends when nobody has looked for a while.
func TestIdle(t *testing.T) {
	addr, ended := started(t, Options{Socket: socket(t), Token: token, Idle: 100 * time.Millisecond})
	status, _, _ := ask(t, "GET", addr, "/v1/live", "", "Authorization: Bearer "+token)
	testkit.Want(t, status == 200, "%v", status)
	testkit.Eventually(t, time.Minute, "the page to end", func() bool {
		select {
		case <-ended:
			return true
		default:
			return false
		}
	})
}
