package socket

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"github.com/cabrank/cabrank/internal/auth"
	"github.com/cabrank/cabrank/internal/testkit"
)

// tokens knows identities by their token.
type tokens map[string]*auth.Identity

func (all tokens) Verify(token string) (*auth.Identity, error) {
	if identity := all[token]; identity != nil {
		return identity, nil
	}
	return nil, errors.New("no such token")
}

// A token counts in each of its places, a cookie from listed origins alone.
func TestPlacesOfTokens(t *testing.T) {
	const page = "https://shop.example"
	url, server, _ := start(t, Options{
		Auth: tokens{"good": {User: "u1"}}, AuthCookie: "session", Origins: []string{page, ""},
	}, noBounds)
	cookie := func(origin, value string) http.Header {
		h := http.Header{"Cookie": {"a=b; session=" + value}}
		if origin != "" {
			h.Set("Origin", origin)
		}
		return h
	}
	for name, tc := range map[string]struct {
		query  string
		header http.Header
		status int
		says   string
	}{
		"header":                   {header: http.Header{"Authorization": {"Bearer good"}}, status: 101},
		"header, small letters":    {header: http.Header{"Authorization": {"bearer good"}}, status: 101},
		"query":                    {query: "?token=good&Juggler-Allowed-Messages=sub", status: 101},
		"cookie":                   {header: cookie(page, "good"), status: 101},
		"cookie without an origin": {header: cookie("", "good"), status: 401, says: "no such token"},
		"other scheme":             {header: http.Header{"Authorization": {"Basic good"}}, status: 401, says: "no such token"},
		"wrong":                    {query: "?token=secret", status: 401, says: "no such token"},
		"none":                     {status: 401, says: "no such token"},
		"other origin":             {query: "?token=good", header: http.Header{"Origin": {"https://evil.example"}}, status: 403},
	} {
		t.Run(name, func(t *testing.T) {
			status, said := knock(t, url+tc.query, tc.header)
			testkit.Want(t, status == tc.status && strings.Contains(said, tc.says) && !strings.Contains(said, "secret"),
				"%d %s", status, said)
		})
	}
	testkit.Equal(t, server.Stats().Refused["token"], 4, "tokens refused")
}

// Without listed origins a cookie of the host's own pages does not count.
func TestCookieOfTheHost(t *testing.T) {
	url, _, _ := start(t, Options{Auth: tokens{"good": {}}, AuthCookie: "session"}, noBounds)
	own := "http" + strings.TrimSuffix(strings.TrimPrefix(url, "ws"), "/ws")
	if status, _ := knock(t, url, http.Header{"Cookie": {"session=good"}, "Origin": {own}}); status != 401 {
		t.Errorf("a cookie: %d", status)
	}
	if status, _ := knock(t, url+"?token=good", http.Header{"Origin": {own}}); status != 101 {
		t.Errorf("a query: %d", status)
	}
}

// What the rules do not allow is a NACK 403, in the order of the requests.
func TestRules(t *testing.T) {
	url, server, _ := start(t, Options{Auth: tokens{"t": {
		User: "u1", Call: []string{"test.*"}, Publish: []string{"chat.[ab]"}, Subscribe: []string{"chat.*"},
	}}}, noBounds)
	c := dial(t, url+"?token=t")
	c.send(subFrame("1", "chat.a"), subFrame("2", "news"), unsubFrame("3", "news"), pubFrame("4", "chat.c", "x"),
		pubFrame("5", "chat.a", "y"), callFrame("6", "shop.buy", time.Minute))
	c.want("ack 1", "nack 2", "ack 3", "nack 4", "evnt 5", "ack 5", "nack 6")
	c.send(callFrame("7", "test.echo", time.Minute)).want("ack 7", "res 7")
	c.send(subFrame("8", "orders"))
	got := c.next()
	testkit.Want(t, got.code == 403 && got.message == "not allowed", "%+v", got)
	testkit.Equal(t, server.Stats().Denied, 4, "requests denied")
}

// The channels of a token come without a SUB, and can be left.
func TestChannelsOfTokens(t *testing.T) {
	url, server, _ := start(t, Options{MaxSubscriptions: 2, Auth: tokens{
		"t": {User: "u1", Channels: []string{"user.1", "all"}}, "p": {Publish: []string{"*"}},
		"many": {Channels: []string{"a", "b", "c"}},
	}}, noBounds)
	c, publisher := dial(t, url+"?token=t"), dial(t, url+"?token=p")
	testkit.Eventually(t, within, "subscriptions", func() bool { return server.Stats().Subscriptions == 2 })
	publisher.send(pubFrame("1", "user.1", "x"))
	c.want("evnt 1")
	c.send(unsubFrame("2", "user.1")).want("ack 2")
	publisher.send(pubFrame("3", "user.1", "x"), pubFrame("4", "all", "x"))
	c.want("evnt 4")
	status, said := knock(t, url+"?token=many", nil)
	testkit.Want(t, status == 401 && strings.Contains(said, "channels"), "too many channels: %d %s", status, said)
}

// A socket that the broker cannot subscribe ends: it would miss events and not know.
func TestChannelsThatFail(t *testing.T) {
	url, server, b := startScripted(t, Options{Auth: tokens{"t": {Channels: []string{"a"}}}})
	c := dial(t, url+"?token=t")
	b.await(t, "sub a").done("sub a", errScripted)
	c.wantClosed(websocket.CloseTryAgainLater)
	wantEnded(t, server, "broker", 1)
}

// A socket goes on when the channels of its token are there, also if the broker tells
// that later.
func TestChannelsThatComeLater(t *testing.T) {
	url, _, b := startScripted(t, Options{Auth: tokens{"t": {Channels: []string{"a"}, Call: []string{"f"}}}})
	c := dial(t, url+"?token=t")
	b.await(t, "sub a")
	c.send(callFrame("1", "f", time.Minute))
	b.done("sub a", nil)
	b.await(t, "sub a", "call f").done("call f", errScripted)
}

// A call says who makes it.
func TestCallHasItsUser(t *testing.T) {
	url, _, b := startScripted(t, Options{Auth: tokens{"t": {User: "u1", Call: []string{"a"}}}})
	dial(t, url+"?token=t").send(callFrame("1", "a", time.Minute))
	defer b.await(t, "call a").leave()
	b.mu.Lock()
	defer b.mu.Unlock()
	got := b.calls["a"].Caller
	testkit.Want(t, got.User == "u1" && got.ID != "", "%+v", got)
}

// A socket ends when its token does.
func TestExpiryEndsASocket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		server, dialer := servePipes(t, Options{
			Broker: newScripted(), Ping: time.Hour, ReadTimeout: time.Hour,
			Auth: tokens{"t": {Expires: began.Add(90 * time.Second)}, "long": {}, "for good": {Expires: time.Unix(9_999_999_999, 0)}},
		})
		for token, lasts := range map[string]bool{"t": false, "long": true, "for+good": true} {
			ws := open(t, dialer, "ws://pipe/?token="+token)
			if lasts {
				continue
			}
			_, _, err := ws.ReadMessage()
			testkit.Want(t, websocket.IsCloseError(err, websocket.ClosePolicyViolation), "it has ended by %v", err)
			late := time.Since(began) - 90*time.Second
			testkit.Want(t, late >= 0 && late <= longestRound, "it has ended %v after its time", late)
		}
		synctest.Wait()
		s := server.Stats()
		testkit.Want(t, s.Ended["expired"] == 1 && s.Sockets == 2, "%+v", s)
	})
}

// A socket that sends more than it may is slowed down; nothing of it is lost. Pongs that
// nobody asked for are held back, too.
func TestRateOfMessages(t *testing.T) {
	for pongs, messages := range map[int]int{0: 60, 59: 1} {
		synctest.Test(t, func(t *testing.T) {
			server, dialer := servePipes(t, Options{Broker: newScripted(), MessagesPerSecond: 10})
			ws, began := open(t, dialer, "ws://pipe/"), time.Now()
			go func() {
				for range pongs {
					err := ws.WriteControl(websocket.PongMessage, nil, time.Time{})
					testkit.Want(t, err == nil, "%v", err)
				}
				for range messages {
					err := ws.WriteMessage(websocket.TextMessage, []byte(unsubFrame("1", "a")))
					testkit.Want(t, err == nil, "%v", err)
				}
			}()
			for range messages {
				_, _, err := ws.ReadMessage()
				testkit.Must(t, err)
			}
			if took, slowed := time.Since(began), server.Stats().Slowed; took != 5*time.Second || slowed != 50 {
				t.Errorf("%d pongs and %d messages took %v, %d were slowed down", pongs, messages, took, slowed)
			}
		})
	}
}

// A further token renews a socket. What it does not allow any more ends, and the client
// is told; one that counts for nothing, or is of another user, changes nothing.
func TestFurtherTokens(t *testing.T) {
	now := time.Now()
	all := tokens{
		"t":       {User: "u1", Expires: now.Add(time.Minute), Subscribe: []string{"a"}, Channels: []string{"b"}},
		"more":    {User: "u1", Expires: now.Add(time.Hour), Subscribe: []string{"*"}, Channels: []string{"b", "c"}},
		"less":    {User: "u1", Expires: now.Add(time.Hour), Channels: []string{"b"}},
		"another": {User: "u2", Subscribe: []string{"*"}},
		"":        {Subscribe: []string{"a"}},
	}
	for name, tc := range map[string]struct {
		first, second, told string
		topics              int
		expires             time.Time
	}{
		"renewed":        {"t", "more", `{"type":"sub","channel":"c"}`, 3, now.Add(time.Hour)},
		"of nobody":      {"", "t", `{"type":"sub","channel":"b"}`, 2, now.Add(time.Minute)},
		"with less":      {"t", "less", `{"type":"unsb","channel":"a"}`, 1, now.Add(time.Hour)},
		"unknown":        {"t", "wrong", `{"type":"nack","id":2,"error":{"code":401,"message":"no such token"}}`, 2, now.Add(time.Minute)},
		"of another":     {"t", "another", `{"type":"nack","id":2,"error":{"code":401,"message":"the token is of another user"}}`, 2, now.Add(time.Minute)},
		"with no longer": {"t", "", `{"type":"nack","id":2,"error":{"code":401,"message":"the token is of another user"}}`, 2, now.Add(time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			url, server, _ := start(t, Options{Auth: all}, noBounds)
			c := join(t, &websocket.Dialer{}, url+"?token="+tc.first)
			if len(all[tc.first].Channels) > 0 {
				c.want(`{"type":"sub","channel":"b"}`)
			}
			c.send(`{"type":"sub","id":1,"channel":"a"}`).want(`{"type":"ack","id":1}`)
			c.send(`{"type":"auth","id":2,"token":"` + tc.second + `"}`).want(tc.told)
			if !strings.Contains(tc.told, "nack") {
				got := c.next()
				testkit.Want(t, strings.HasPrefix(got, `{"type":"ack","id":2,"user":"u1","ttl":`), "got %s", got)
			}
			testkit.Eventually(t, within, "topics", func() bool { return server.Stats().Subscriptions == tc.topics })
			if expires := server.sessions()[0].expires.Load(); expires != tc.expires.UnixNano() {
				t.Errorf("it ends at %v", time.Unix(0, expires))
			}
		})
	}
}

// Who shows no token ends after 5 seconds; a token holds until it ends, a further one
// until that does.
func TestTimesOfTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		server, dialer := servePipes(t, Options{Broker: newScripted(), Ping: time.Hour, Auth: tokens{
			"short": {User: "u1", Expires: began.Add(time.Minute)}, "long": {User: "u1", Expires: began.Add(time.Hour)},
		}})
		silent, shows := join(t, dialer, "ws://pipe/"), join(t, dialer, "ws://pipe/")
		shows.send(`{"type":"auth","token":"short"}`)
		silent.wantClosed(closeToken)
		testkit.Equal(t, time.Since(began), firstTokenTime, "without a token it ended after")
		time.Sleep(30 * time.Second) //nolint:forbidigo // the time of the bubble
		shows.send(`{"type":"auth","token":"long"}`)
		shows.ws.SetReadDeadline(time.Time{})
		_, _, err := shows.ws.ReadMessage()
		if took := time.Since(began); !websocket.IsCloseError(err, closeToken) || took < time.Hour || took > time.Hour+longestRound {
			t.Errorf("it ended after %v by %v", took, err)
		}
		synctest.Wait()
		testkit.Equal(t, server.Stats().Ended["expired"], 2, "sockets that have expired")
	})
}
