//go:build real || soak

package socket_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/cabrank/cabrank/test/real/harness"
)

// page subscribes to a channel, tells that it has, and then each event that comes. It
// tells one thing after the other: two requests of a browser may overtake each other.
const page = `<!doctype html><script>
let told = Promise.resolve()
const say = text => told = told.then(() => fetch("/said", {method: "POST", body: text}))
const ws = new WebSocket("ws://%s/ws", "juggler.0")
ws.onopen = () => ws.send(JSON.stringify({meta: {type: 3}, payload: {channel: "news"}}))
ws.onerror = () => say("error")
ws.onmessage = e => {
  const m = JSON.parse(e.data)
  say(m.meta.type == 8 ? "subscribed" : JSON.stringify(m.payload.args))
}
</script>`

// browser shows a page, which finds its sockets at an address that is known when it
// asks, and returns where it comes from and what it says.
func browser(t *testing.T, page string, address func() string) (origin string, said <-chan string, open func()) {
	t.Helper()
	texts := make(chan string, 100)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, page, address()) })
	mux.HandleFunc("POST /said", func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		texts <- string(text)
	})
	site := httptest.NewServer(mux)
	t.Cleanup(site.Close)
	return site.URL, texts, func() {
		// The page is ours: the browser may do without its sandbox, which root has not.
		harness.StartProcess(t, nil, harness.Browser(t), "--headless=new", "--no-sandbox", "--disable-gpu",
			"--disable-dev-shm-usage", "--remote-debugging-port=0", "--user-data-dir="+t.TempDir(), site.URL)
	}
}

func wantSaid(t *testing.T, said <-chan string, want string) {
	t.Helper()
	select {
	case got := <-said:
		if got != want {
			t.Fatalf("the page says %s, want %s", got, want)
		}
	case <-time.After(harness.Patience):
		t.Fatalf("the page does not say %s", want)
	}
}

// A page in a browser has its socket on the port of the calls, if its origin may.
func TestBrowser(t *testing.T) {
	var c *harness.Cabrank
	origin, said, open := browser(t, page, func() string { return c.Addr })
	c = harness.StartCabrankEnv(t, []string{"CABRANK_SOCKET_ORIGIN=none," + origin},
		slices.Concat([]string{"--socket-path", "/ws", "--workers", "1", "--transport", "unix", "--"}, harness.FaultWorker(t))...)
	c.WaitReady(harness.Patience)
	open()
	wantSaid(t, said, "subscribed")
	p := dial(t, c.Addr)
	p.send(2, `{"channel":"news","args":{"price":3}}`)
	p.want(8, "")
	wantSaid(t, said, `{"price":3}`)
	if got := harness.CallIo(t.Context(), harness.Dial(t, c.Addr), "call", time.Millisecond); got.Err != nil {
		t.Errorf("a call beside it: %v", got.Err)
	}
}
