//go:build real || soak

// Package auth_test has tokens shown to the built binary: by programs and by pages in a
// browser, good ones and forged ones.
package auth_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/oldjuggler"
	"github.com/cabrank/cabrank/test/real/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// secret is what the tests sign with. No log and no answer may have it.
const secret = "a-secret-of-the-tests-0123456789abcdef"

func encode(part any) string {
	text, isText := part.(string)
	if !isText {
		bytes, _ := json.Marshal(part)
		text = string(bytes)
	}
	return base64.RawURLEncoding.EncodeToString([]byte(text))
}

// sign makes a token by hand.
func sign(by, header string, claims any) string {
	text := encode(header) + "." + encode(claims)
	h := hmac.New(sha256.New, []byte(by))
	h.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// tokenFor makes a good token of user 7, with changes.
func tokenFor(changes map[string]any) string {
	claims := map[string]any{"sub": "7", "exp": time.Now().Add(time.Hour).Unix(), "call": []string{"test.*"}}
	maps.Copy(claims, changes)
	return sign(secret, `{"alg":"HS256","typ":"JWT"}`, claims)
}

func file(t testing.TB, content string) string {
	t.Helper()
	name := harness.WriteFile(t, "key", content)
	return name
}

// start starts cabrank socket serve, with all lines of its log, and a metrics page.
func start(t testing.TB, env []string, flags ...string) (c *harness.Cabrank, address string) {
	t.Helper()
	args := append([]string{"socket", "serve", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--log-level", "debug", "--test-functions"}, flags...)
	c = &harness.Cabrank{Process: harness.StartProcess(t, env, harness.CabrankBinary(t), args...)}
	address = c.Listening("listening")
	c.MetricsAddr = c.Listening("metrics listening")
	return c, address
}

// socket is one that was opened.
type socket struct {
	t  testing.TB
	ws *websocket.Conn
}

// knock asks for a socket; without one it returns the status and what was said.
func knock(t testing.TB, address, query string, header http.Header) (s *socket, status int, said string) {
	t.Helper()
	dialer := websocket.Dialer{Subprotocols: []string{oldjuggler.Protocol}}
	ws, response, err := dialer.Dial("ws://"+address+"/ws"+query, header)
	if err == nil {
		t.Cleanup(func() { ws.Close() })
		return &socket{t, ws}, response.StatusCode, ""
	}
	testkit.Need(t, response != nil, "%v", err)
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	return nil, response.StatusCode, string(text)
}

// open opens a socket with a token.
func open(t testing.TB, address, token string) *socket {
	t.Helper()
	s, status, said := knock(t, address, "", http.Header{"Authorization": {"Bearer " + token}})
	testkit.Need(t, s != nil, "no socket: %d %s", status, said)
	return s
}

func (s *socket) send(kind int, payload string) {
	s.t.Helper()
	text := fmt.Sprintf(`{"meta":{"type":%d},"payload":%s}`, kind, payload)
	testkit.Must(s.t, s.ws.WriteMessage(websocket.TextMessage, []byte(text)))
}

// want takes messages that have such texts, in this order.
func (s *socket) want(texts ...string) {
	s.t.Helper()
	for _, text := range texts {
		testkit.Must(s.t, s.ws.SetReadDeadline(time.Now().Add(harness.Patience)))
		_, got, err := s.ws.ReadMessage()
		testkit.Need(s.t, err == nil && strings.Contains(string(got), text), "got %s, %v; want %s", got, err, text)
	}
}

// Kinds of messages, as they are on the wire.
const (
	call, publish, subscribe  = 1, 2, 3
	nack, ack, result, anEvnt = `{"type":7,`, `{"type":8,`, `{"type":9,`, `{"type":10,`
)

// wantNoSecret holds all that a process has written, and its metrics, against words that
// nobody may see, after end has ended it.
func wantNoSecret(t testing.TB, c *harness.Cabrank, end func(), words ...string) {
	t.Helper()
	page := c.MetricsText()
	end()
	for _, word := range append(words, secret) {
		if strings.Contains(c.Log()+c.Output()+page, word) {
			t.Errorf("%.20s... is seen", word)
		}
	}
	testkit.Says(t, c.Log(), "listening")
}
