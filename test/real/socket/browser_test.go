//go:build real || soak

package socket_test

import (
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

// A page in a browser has its socket on the port of the calls, if its origin may.
func TestBrowser(t *testing.T) {
	var c *harness.Cabrank
	site := harness.NewSite(t, page, func() string { return c.Addr })
	c = harness.StartCabrankEnv(t, []string{"CABRANK_SOCKET_ORIGIN=none," + site.Origin},
		withSockets(t)...)
	c.WaitReady(harness.Patience)
	site.Show(t.TempDir())
	site.WantSaid("subscribed")
	p := dial(t, c.Addr)
	p.send(2, `{"channel":"news","args":{"price":3}}`).want(8, "")
	site.WantSaid(`{"price":3}`)
	harness.CallIo(t.Context(), harness.Dial(t, c.Addr), "call", time.Millisecond).WantOK(t)
}
