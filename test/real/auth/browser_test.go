//go:build real || soak

package auth_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/cabrank/cabrank/test/real/harness"
)

// page opens a socket at an address, asks for what it may and for what it may not, and
// tells what came of it.
const page = `<!doctype html><script>
const say = text => fetch("/said", {method: "POST", body: text})
const ws = new WebSocket(%q, "juggler.0")
const send = (type, payload) => ws.send(JSON.stringify({meta: {type}, payload}))
ws.onopen = () => send(3, {channel: "secret"})
ws.onerror = () => say("no socket")
ws.onmessage = async e => {
  const {meta, payload} = JSON.parse(e.data)
  if (meta.type == 8) return
  await say(payload.code ?? payload.args)
  if (meta.type == 7) send(1, {uri: "test.reverse", args: "abc"})
}
</script>`

// visit shows the page in a browser, from a site that sets a cookie for its host, and
// returns what the page says.
func visit(t *testing.T, cookie string, address func(origin string) string) <-chan string {
	t.Helper()
	said := make(chan string, 10)
	mux := http.NewServeMux()
	site := httptest.NewServer(mux)
	t.Cleanup(site.Close)
	url := address(site.URL)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "session", Value: cookie, HttpOnly: true, SameSite: http.SameSiteLaxMode})
		fmt.Fprintf(w, page, url)
	})
	mux.HandleFunc("POST /said", func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		said <- string(text)
	})
	// The page is ours: the browser may do without its sandbox, which root has not.
	harness.StartProcess(t, nil, harness.Browser(t), "--headless=new", "--no-sandbox", "--disable-gpu",
		"--disable-dev-shm-usage", "--remote-debugging-port=0", "--user-data-dir="+t.TempDir(), site.URL)
	return said
}

func wantSaid(t *testing.T, said <-chan string, want ...string) {
	t.Helper()
	for _, text := range want {
		select {
		case got := <-said:
			if got != text {
				t.Fatalf("the page says %s, want %s", got, text)
			}
		case <-time.After(harness.Patience):
			t.Fatalf("the page does not say %s", text)
		}
	}
}

// A page in a browser comes in by its cookie, if its origin is listed, or by a token in
// the query, and may do what its token says.
func TestPages(t *testing.T) {
	good := tokenFor(nil)
	for name, tc := range map[string]struct {
		cookie, query string
		flags         []string
		want          []string
	}{
		"cookie":                  {cookie: good, flags: []string{"--auth-cookie", "session"}, want: []string{"403", "cba"}},
		"query":                   {cookie: "x", query: "?token=" + good, want: []string{"403", "cba"}},
		"cookie that is no token": {cookie: "x", flags: []string{"--auth-cookie", "session"}, want: []string{"no socket"}},
		"cookie nobody looks at":  {cookie: good, want: []string{"no socket"}},
	} {
		t.Run(name, func(t *testing.T) {
			var c *harness.Cabrank
			said := visit(t, tc.cookie, func(origin string) string {
				var address string
				c, address = start(t, nil, append(tc.flags, "--auth-secret", file(t, secret), "--origin", origin)...)
				return "ws://" + address + "/ws" + tc.query
			})
			wantSaid(t, said, tc.want...)
			wantNoSecret(t, c, c.Kill, good)
		})
	}
}
