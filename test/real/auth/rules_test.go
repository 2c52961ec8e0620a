//go:build real || soak

package auth_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

func jsonOf(t testing.TB, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	testkit.Must(t, err)
	return text
}

// A socket may do what its token, or else the server, says; all else is refused in its
// turn. Channels of the token come by themselves.
func TestRulesAtTheDoor(t *testing.T) {
	c, address := start(t, nil, "--auth-secret", file(t, secret), "--auth-optional",
		"--auth-call", "test.nothing", "--auth-subscribe", "news.*,user.{user}.*")
	user := open(t, address, tokenFor(map[string]any{"channels": []string{"user.7.mail"}}))
	admin := open(t, address, tokenFor(map[string]any{"sub": "admin", "publish": []string{"*"}, "subscribe": []string{}}))
	anybody, status, said := knock(t, address, "", nil)
	testkit.Need(t, anybody != nil, "without a token: %d %s", status, said)
	for uri, want := range map[string]string{"test.echo": ack, "shop.buy": `"code":403`} {
		user.send(call, fmt.Sprintf(`{"uri":%q,"args":1}`, uri))
		user.want(want)
		if want == ack {
			user.want(result)
		}
	}
	user.send(subscribe, `{"channel":"news.sport"}`)
	user.send(subscribe, `{"channel":"user.7.orders"}`)
	user.send(subscribe, `{"channel":"user.8.orders"}`)
	user.send(subscribe, `{"channel":"user.7.*","pattern":true}`)
	user.send(subscribe, `{"channel":"*","pattern":true}`)
	user.send(publish, `{"channel":"news.sport"}`)
	user.want(ack, ack, nack, ack, nack, nack)
	admin.send(subscribe, `{"channel":"news.sport"}`)
	admin.want(`"code":403`)
	anybody.send(call, `{"uri":"test.nothing"}`)
	anybody.want(ack, result)
	anybody.send(call, `{"uri":"test.echo"}`)
	anybody.send(subscribe, `{"channel":"user..orders"}`)
	anybody.send(subscribe, `{"channel":"news.sport"}`)
	anybody.want(nack, nack, ack)
	admin.send(publish, `{"channel":"user.7.mail","args":"a letter"}`)
	admin.want(ack)
	user.want(`"args":"a letter"`, `"pattern":"user.7.*"`) // by its token, and by its own
	admin.send(publish, `{"channel":"news.sport","args":"goal"}`)
	anybody.want(`"args":"goal"`)
	testkit.Equal(t, c.Metric("cabrank_socket_requests_denied_total"), 7, "requests denied")
	wantNoSecret(t, c, c.Kill)
}

// A socket that sends as fast as it can is read as fast as it may; another one does not
// notice.
func TestFloodOfMessages(t *testing.T) {
	const rate = 50
	c, address := start(t, nil, "--auth-secret", file(t, secret), "--message-rate", fmt.Sprint(rate))
	began := time.Now()
	flood := open(t, address, tokenFor(map[string]any{"publish": []string{"*"}}))
	go func() { // what it is answered nobody reads
		message := []byte(`{"meta":{"type":2},"payload":{"channel":"c","args":"` + fmt.Sprintf("%01000d", 0) + `"}}`)
		for err := error(nil); err == nil; {
			err = flood.ws.WriteMessage(websocket.TextMessage, message)
		}
	}()
	c.Wait(harness.Patience, "the flood", func() bool { return c.Metric("cabrank_socket_messages_slowed_total") > 5 })
	honest := open(t, address, tokenFor(nil))
	var slowest time.Duration
	for range rate {
		asked := time.Now()
		honest.send(call, `{"uri":"test.echo","args":1}`)
		honest.want(ack, result)
		slowest = max(slowest, time.Since(asked))
	}
	came, passed := c.Metric("cabrank_socket_messages_total", "kind", "pub"), time.Since(began)
	t.Logf("%v of the flood came in %v; the slowest call beside it took %v", came, passed, slowest)
	most := rate * (passed.Seconds() + 2)
	testkit.Want(t, came <= most, "%v messages of the flood came in %v, at most %v may", came, passed, most)
	flood.ws.Close()
}

// On the port of the calls it is the same: who shows a good token comes in, and neither
// the log nor a page has it.
func TestTokensOnOnePort(t *testing.T) {
	config := file(t, "auth: {secret: env:THE_SECRET, cookie: session}\nsocket:\n  path: [/ws]\n  origin: [none]\n")
	args := slices.Concat([]string{"--config", config, "--log-level", "debug", "--workers", "1", "--transport", "unix", "--"}, harness.FaultWorker(t))
	c := harness.StartCabrankEnv(t, []string{"THE_SECRET=" + secret}, args...)
	c.WaitReady(harness.Patience)
	good := tokenFor(nil)
	if s, _, said := knock(t, c.Addr, "?token="+good, nil); s == nil {
		t.Errorf("a good token: %s", said)
	} else {
		s.send(subscribe, `{"channel":"c"}`)
		s.want(`"code":403`)
		s.ws.Close()
	}
	for _, query := range []string{"", "?token=" + good + "x"} {
		if _, status, said := knock(t, c.Addr, query, nil); status != 401 {
			t.Errorf("%s: %d %s", query, status, said)
		}
	}
	for _, path := range []string{"/ws?token=" + good, "/other?token=" + good} {
		raw(t, c.Addr, "GET "+path+" HTTP/1.1\r\nHost: a\r\n\r\n")
	}
	wantNoSecret(t, c, c.Stop, good)
}
