//go:build real || soak

package socket_test

import (
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/test/real/harness"
)

// page1 speaks juggler.1, first as JSON, then as protobuf, and tells what comes of it.
const page1 = `<!doctype html><meta charset="utf-8"><script>
const url = "ws://%s/ws"
let told = Promise.resolve()
const say = text => told = told.then(() => fetch("/said", {method: "POST", body: text}))

const ws = new WebSocket(url, "juggler.1"), waiting = new Map(), events = new Map()
let last = 0
const send = m => ws.send(JSON.stringify(m))
const ask = (m, part) => new Promise((done, failed) => {
  m.id = ++last
  waiting.set(m.id, {done, failed, part, isCall: m.type == "call"})
  send(m)
  if (m.canceled) m.canceled(() => send({type: "cancel", id: m.id}))
})
const call = (uri, args, more) => ask({type: "call", uri, args, ...more})

ws.onmessage = ({data}) => {
  const m = JSON.parse(data), w = waiting.get(m.id)
  if (m.type == "welcome") return tell(m)
  if (m.type == "evnt") return events.get(m.pattern ?? m.channel)(m)
  if (m.more) return w.part(m.args, m.id)
  if (m.type == "ack" && w.isCall) return
  waiting.delete(m.id)
  m.error || m.type == "exp" ? w.failed(m.error ? m.error.code ?? m.error.message : "expired") : w.done(m.args)
}
ws.onclose = e => say("closed " + e.code + " " + e.reason)

async function tell(welcome) {
  say(ws.protocol + " " + welcome.ping + " " + welcome.limits.calls)
  say("call " + await call("test.reverse", "äbc"))
  say("nobody " + await call("test.nobody").catch(e => e))
  say("failed " + await call("test.delay", "x").catch(e => e))
  say("expired " + await call("test.delay", "5000", {timeout: 20}).catch(e => e))
  const parts = []
  const end = await ask({type: "call", uri: "test.count", args: "5", credit: 2}, (part, id) => {
    parts.push(part)
    send({type: "credit", id, credit: 1})
  })
  say("stream " + parts + " " + end)
  const stop = new Promise(r => setTimeout(r, 20))
  say("canceled " + await call("test.delay", "5000", {canceled: cancel => stop.then(cancel)}).catch(e => e))
  const event = new Promise(r => events.set("news.*", r))
  await ask({type: "sub", pattern: "news.*"})
  send({type: "pub", channel: "news.sport", args: {goals: [1, 2]}})
  say("event " + JSON.stringify({...await event, id: "x"}))
  binary()
}

// A frame of protobuf by hand: call, number 300, test.echo, "hü", 5000 ms.
function binary() {
  const ws = new WebSocket(url, ["juggler.1.proto", "juggler.0"])
  ws.binaryType = "arraybuffer"
  const text = s => [...new TextEncoder().encode(s)]
  const field = (n, bytes) => [n << 3 | 2, bytes.length, ...bytes]
  ws.onmessage = ({data}) => {
    const bytes = [...new Uint8Array(data)]
    if (bytes[1] == 16) return ws.send(new Uint8Array([8, 1, 16, 0xac, 2, ...field(4, text("test.echo")), ...field(7, text('"hü"')), 72, 0x88, 0x27]))
    say("binary " + bytes.map(b => b.toString(16).padStart(2, "0")).join(""))
    if (bytes[1] == 9) window.ws1.send("{")
  }
}
window.ws1 = ws
</script>`

// A page in a browser speaks juggler.1: calls, streams by credit, cancel, events, binary.
func TestBrowserSpeaksJuggler1(t *testing.T) {
	var url string
	site := harness.NewSite(t, page1, func() string {
		return strings.TrimSuffix(strings.TrimPrefix(url, "ws://"), "/ws")
	})
	_, url = startServe(t, "--test-functions", "--origin", site.Origin)
	site.Show(t.TempDir())
	site.WantSaid(
		"juggler.1 30000 1000",
		"call cbä",
		"nobody 404",
		`failed strconv.Atoi: parsing "x": invalid syntax`,
		"expired expired",
		"stream 1,2,3,4,5 undefined",
		"canceled 499",
		`event {"type":"evnt","id":"x","channel":"news.sport","pattern":"news.*","args":{"goals":[1,2]}}`,
		"binary 080810ac02",
		"binary 080910ac023a052268c3bc22",
		"closed 4400 not a message: unexpected end of JSON input",
	)
}

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
