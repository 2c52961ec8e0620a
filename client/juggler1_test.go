package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"github.com/cabrank/cabrank/internal/testkit"
)

// said is what a client of juggler.1 has said.
type said struct {
	Type    string `json:"type"`
	ID      int    `json:"id"`
	URI     string `json:"uri"`
	Timeout int    `json:"timeout"`
	Credit  int    `json:"credit"`
	Token   string `json:"token"`
}

// talk serves a socket of juggler.1: a welcome, then what reply returns for each message.
func talk(reply func(said) []string) func(*websocket.Conn, <-chan struct{}) {
	return func(ws *websocket.Conn, _ <-chan struct{}) {
		texts := []string{`{"type":"welcome","version":"juggler.1","connection":"me","user":"7","ttl":100000,"limits":{"new":1}}`}
		for {
			for _, text := range texts {
				if ws.WriteMessage(websocket.TextMessage, []byte(text)) != nil {
					return
				}
			}
			var m said
			if ws.ReadJSON(&m) != nil {
				return
			}
			texts = reply(m)
		}
	}
}

// Calls have codes, expire there or here, and are canceled.
func TestCallsOfJuggler1(t *testing.T) {
	heard := make(chan said, 100)
	bubble(t, Options{Protocols: []string{Juggler1}}, talk(func(m said) []string {
		heard <- m
		switch m.URI {
		case "nobody":
			return []string{fmt.Sprintf(`{"type":"nack","id":%d,"error":{"code":404,"message":"no function"}}`, m.ID)}
		case "expires":
			return []string{fmt.Sprintf(`{"type":"ack","id":%d}`, m.ID), fmt.Sprintf(`{"type":"exp","id":%d}`, m.ID)}
		case "nothing":
			return []string{fmt.Sprintf(`{"type":"ack","id":%d}`, m.ID), fmt.Sprintf(`{"type":"res","id":%d}`, m.ID)}
		case "fails":
			return []string{fmt.Sprintf(`{"type":"res","id":%d,"error":{"code":7,"message":"no"}}`, m.ID)}
		}
		return []string{`{"type":"news of a later version"}`}
	}), func(t scene, c *Client) {
		_, err := c.Call(t.Context(), "nobody", 1)
		if no, ok := errors.AsType[*RefusedError](err); !ok || no.Code != 404 || no.Message != "no function" {
			t.Errorf("got %v", err)
		}
		_, err = c.Call(t.Context(), "expires", 1)
		if expired, ok := errors.AsType[*ExpiredError](err); !ok || !expired.Taken || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		got, err := c.Call(t.Context(), "nothing", 1)
		testkit.Want(t, err == nil && string(got) == "null", "got %s, %v", got, err)
		_, err = c.Call(t.Context(), "fails", 1)
		if failed, ok := errors.AsType[*FunctionError](err); !ok || failed.Code != 7 || failed.Message != "no" {
			t.Errorf("got %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		_, err = c.Call(ctx, "silent", 1)
		cancel()
		testkit.Want(t, errors.Is(err, context.DeadlineExceeded), "got %v", err)
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err = c.Call(ctx, "silent", 1)
		testkit.Want(t, errors.Is(err, context.Canceled), "got %v", err)
		synctest.Wait()
		var all []string
		for len(heard) > 0 {
			m := <-heard
			all = append(all, fmt.Sprintf("%s%d:%d", m.Type, m.ID, m.Timeout))
		}
		testkit.Equal(t, strings.Join(all, " "), "call1:60000 call2:60000 call3:60000 call4:60000 call5:2000 call6:60000 cancel6:0",
			"the server has heard")
		testkit.Want(t, c.Connection() == "me" && c.Protocol() == Juggler1, "%s, %s", c.Connection(), c.Protocol())
	})
}

// A stream has as many results as there are, none of them twice, and gives credit for
// more as they are taken.
func TestStream(t *testing.T) {
	credit, sent, left := 0, 0, 0
	bubble(t, Options{Protocols: []string{Juggler1}}, talk(func(m said) (texts []string) {
		switch m.Type {
		case "call":
			credit, sent, left = m.Credit, 0, 200
		case "credit":
			credit += m.Credit
		}
		for ; credit > 0 && left > 0; credit, left = credit-1, left-1 {
			sent++
			texts = append(texts, fmt.Sprintf(`{"type":"res","id":%d,"args":%d,"more":true}`, m.ID, sent))
		}
		if left == 0 {
			left = -1
			texts = append(texts, fmt.Sprintf(`{"type":"res","id":%d}`, m.ID))
		}
		return texts
	}), func(t scene, c *Client) {
		next := 1
		for n, err := range Stream[int](t.Context(), c, "f", nil) {
			testkit.Need(t, err == nil && n == next, "got %d, %v, want %d", n, err, next)
			if next++; n == 1 {
				synctest.Wait()
				testkit.Want(t, sent == streamCredit, "%d were sent while nobody took any", sent)
			}
		}
		testkit.Want(t, next == 201, "%d results", next-1)
		for range c.Stream(t.Context(), "f", nil) {
			break
		}
		for _, err := range Stream[string](t.Context(), c, "f", nil) {
			testkit.Want(t, err != nil && strings.Contains(err.Error(), "call f: a result: json"), "got %v", err)
		}
	})
}

// A server that sends more results than it was given credit for is left.
func TestTooManyResults(t *testing.T) {
	bubble(t, Options{Protocols: []string{Juggler1}, NoReconnect: true}, talk(func(m said) (texts []string) {
		for range streamCredit + 2 {
			texts = append(texts, fmt.Sprintf(`{"type":"res","id":%d,"args":1,"more":true}`, m.ID))
		}
		return texts
	}), func(t scene, c *Client) {
		var last error
		for _, err := range c.Stream(t.Context(), "f", nil) {
			<-c.Done()
			last = err
		}
		testkit.Want(t, isDisconnected(last, true) && strings.Contains(last.Error(), "more results of f than it may"), "got %v", last)
	})
}

// A server must begin with the welcome. One that wants a token is refused by a client that
// has none.
func TestNoWelcome(t *testing.T) {
	for first, want := range map[string]string{
		`{"type":"ack","id":1}`:          `its first message is "ack"`,
		`{"type":"welcome","auth":5000}`: "the server wants a token",
		`hello`:                          "invalid character",
	} {
		synctest.Test(t, func(t *testing.T) {
			l := newLines(Juggler1, func(ws *websocket.Conn, _ <-chan struct{}) {
				ws.WriteMessage(websocket.TextMessage, []byte(first))
			})
			defer l.close()
			_, err := Dial(t.Context(), "ws://server", Options{DialContext: l.dial})
			testkit.Want(t, err != nil && strings.Contains(err.Error(), want), "got %v", err)
		})
	}
}

// A subscription that the server ends has an end here, too.
func TestRevokedSubscription(t *testing.T) {
	bubble(t, Options{Protocols: []string{Juggler1}}, talk(func(m said) []string {
		return []string{
			fmt.Sprintf(`{"type":"ack","id":%d}`, m.ID), `{"type":"evnt","channel":"a","pattern":"a*","args":1}`,
			`{"type":"unsb","channel":"b"}`, `{"type":"unsb","pattern":"a*"}`,
		}
	}), func(t scene, c *Client) {
		s, err := c.SubscribePattern(t.Context(), "a*")
		testkit.Must(t, err)
		e, err := s.Next(t.Context())
		testkit.Want(t, err == nil && e.Channel == "a" && e.ID == "", "got %+v, %v", e, err)
		_, err = s.Next(t.Context())
		no, ok := errors.AsType[*RefusedError](err)
		testkit.Want(t, ok && no.Code == 403, "got %v", err)
	})
}

// The first event behind a gap at the server says that others may have been missed.
func TestGapAtTheServer(t *testing.T) {
	bubble(t, Options{Protocols: []string{Juggler1}}, talk(func(m said) []string {
		texts := []string{fmt.Sprintf(`{"type":"ack","id":%d}`, m.ID)}
		for _, gap := range []string{"", `{"type":"gap","pattern":"b*"}`, `{"type":"gap","pattern":"a*"}`, ""} {
			if gap != "" {
				texts = append(texts, gap)
			}
			texts = append(texts, `{"type":"evnt","channel":"a","pattern":"a*","args":1}`)
		}
		return texts
	}), func(t scene, c *Client) {
		s, err := c.SubscribePattern(t.Context(), "a*")
		testkit.Must(t, err)
		for i, want := range []bool{false, false, true, false} {
			e, err := s.Next(t.Context())
			testkit.Want(t, err == nil && e.Resumed == want, "event %d: got %+v, %v", i, e, err)
		}
	})
}

// A token is shown anew before its time is over, and again if the server does not take
// it, on the same connection.
func TestToken(t *testing.T) {
	var shown []string
	began, tokens := time.Now(), 0
	bubble(t, Options{
		Protocols: []string{Juggler1},
		Token: func(context.Context) (string, error) {
			if tokens++; tokens == 1 {
				began = time.Now()
			}
			if tokens == 4 {
				return "", errors.New("not now")
			}
			return fmt.Sprint("t", tokens), nil
		},
	}, talk(func(m said) []string {
		shown = append(shown, fmt.Sprintf("%s %s at %v", m.Type, m.Token, time.Since(began)))
		if m.Token == "t3" {
			return []string{fmt.Sprintf(`{"type":"nack","id":%d,"error":{"code":401,"message":"no"}}`, m.ID)}
		}
		return []string{fmt.Sprintf(`{"type":"ack","id":%d,"user":"7","ttl":50000}`, m.ID)}
	}), func(t scene, c *Client) {
		<-time.After(150 * time.Second)
		synctest.Wait()
		// At 80 of 100 s, at 40 of 50 s, then in vain at 8 of 10 and, soon, once more.
		want := "auth t2 at 1m20s, auth t3 at 2m0s, auth t5 at 2m9.6s"
		got := strings.Join(shown, ", ")
		testkit.Want(t, got == want && c.Stats().Connections == 1, "%d connections: %s", c.Stats().Connections, got)
	})
}

// Events of channels to which the server has subscribed the connection go to Unasked.
func TestUnasked(t *testing.T) {
	got := make(chan Event, 1)
	bubble(t, Options{Protocols: []string{Juggler1}, Unasked: func(e Event) { got <- e }}, talk(func(m said) []string {
		return []string{`{"type":"sub","channel":"user.7"}`, `{"type":"evnt","channel":"user.7","args":1}`, fmt.Sprintf(`{"type":"ack","id":%d}`, m.ID)}
	}), func(t scene, c *Client) {
		testkit.Must(t, c.Publish(t.Context(), "c", 1))
		if e := <-got; e.Channel != "user.7" || string(e.Args) != "1" {
			t.Errorf("got %+v", e)
		}
	})
}
