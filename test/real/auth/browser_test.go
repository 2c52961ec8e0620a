//go:build real || soak

package auth_test

import (
	"net/http"
	"testing"

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
			var address string
			site := harness.NewSite(t, page, func() string { return "ws://" + address + "/ws" + tc.query },
				&http.Cookie{Name: "session", Value: tc.cookie, HttpOnly: true, SameSite: http.SameSiteLaxMode})
			c, at := start(t, nil, append(tc.flags, "--auth-secret", file(t, secret), "--origin", site.Origin)...)
			address = at
			site.Show(t.TempDir())
			site.WantSaid(tc.want...)
			wantNoSecret(t, c, c.Kill, good)
		})
	}
}
