//go:build real || soak

package auth_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/gorilla/websocket"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// A good token counts wherever it is, a bad one nowhere; and nobody who reads the log, at
// its most talkative, or an answer sees either of them.
func TestTokensAtTheDoor(t *testing.T) {
	const page = "https://shop.example"
	c, address := start(t, nil, "--auth-secret", file(t, secret+"\n"), "--auth-cookie", "session", "--origin", page+",none", "--auth-audience", "sockets")
	inAudience := map[string]any{"aud": "sockets"}
	good, claims := tokenFor(inAudience), map[string]any{"sub": "admin", "exp": time.Now().Add(time.Hour).Unix(), "aud": "sockets"}
	expired := tokenFor(map[string]any{"aud": "sockets", "exp": time.Now().Add(-time.Minute).Unix()})
	forged := sign("another-secret-0123456789abcdef0123", `{"alg":"HS256"}`, claims)
	unsigned := encode(`{"alg":"none"}`) + "." + encode(claims) + "."
	cookie := func(origin, token string) http.Header {
		return http.Header{"Origin": {origin}, "Cookie": {"session=" + token}}
	}
	for name, tc := range map[string]struct {
		query  string
		header http.Header
		status int
		says   string
	}{
		"header":                 {header: http.Header{"Authorization": {"Bearer " + good}}, status: 101},
		"query":                  {query: "?token=" + good, status: 101},
		"cookie":                 {header: cookie(page, good), status: 101},
		"cookie, no page":        {header: http.Header{"Cookie": {"session=" + good}}, status: 401, says: "no token"},
		"cookie, another page":   {header: cookie("https://evil.example", good), status: 401, says: "no token"},
		"query, another page":    {query: "?token=" + good, header: http.Header{"Origin": {"https://evil.example"}}, status: 403},
		"none":                   {status: 401, says: "no token"},
		"expired":                {query: "?token=" + expired, status: 401, says: "the token has expired"},
		"forged":                 {query: "?token=" + forged, status: 401, says: "a key that is not known here"},
		"no algorithm":           {query: "?token=" + unsigned, status: 401, says: "no key here is for"},
		"for another audience":   {query: "?token=" + tokenFor(map[string]any{"aud": "billing"}), status: 401, says: "for another audience"},
		"for nobody":             {header: http.Header{"Authorization": {"Bearer " + tokenFor(nil)}}, status: 401, says: "for another audience"},
		"nothing of a token":     {query: "?token=" + secret, status: 401, says: "no signed token"},
		"a parameter with signs": {query: "?a;b&token=" + good, status: 101},
	} {
		s, status, said := knock(t, address, tc.query, tc.header)
		testkit.Want(t, status == tc.status && strings.Contains(said, tc.says) && !strings.Contains(said, secret),
			"%s: %d %s", name, status, said)
		if s != nil {
			s.send(call, `{"uri":"test.echo","args":"hello"}`)
			s.want(ack, `"args":"hello"`)
		}
	}
	for _, request := range []string{ // that end otherwise
		"GET /ws?token=" + good + " HTTP/1.1\r\nHost: a\r\n\r\n", "GET /other?token=" + good + " HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /ws?token=" + good + "&%zz HTTP/1.1\r\nHost: a\r\nBad Header: " + good + "\r\n\r\n", "BREW /ws?token=" + good + " HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /ws HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 9\r\nAuthorization: Bearer " + good + "\r\n\r\n",
	} {
		if said := raw(t, address, request); strings.Contains(said, good) || !strings.HasPrefix(said, "HTTP/1.1 4") {
			t.Errorf("%.20s... is answered by %s", request, said)
		}
	}
	if said := raw(t, address, "BREW ws?token="+good+" HTTP/9\r\n\r\n"); said != "" { // no HTTP/1, and no HTTP/2
		t.Errorf("HTTP/9 is answered by %s", said)
	}
	testkit.Equal(t, c.Metric("cabrank_sockets_refused_total", "reason", "token"), 9, "sockets refused for their token")
	wantNoSecret(t, c, c.Kill, strings.Split(good, ".")[1], strings.Split(good, ".")[2], strings.Split(forged, ".")[2])
}

// raw sends a request as it is and returns the answer.
func raw(t testing.TB, address, request string) string {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	testkit.Must(t, err)
	defer conn.Close()
	testkit.Must(t, conn.SetDeadline(time.Now().Add(harness.Patience)))
	_, err = io.WriteString(conn, request)
	testkit.Must(t, err)
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "" // the connection has ended
	case err != nil:
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body)
	return answer.Proto + " " + answer.Status + " " + fmt.Sprint(answer.Header) + string(body)
}

// Public keys, in a file, a variable and at a URL: what they have signed counts, and what
// is signed with them as a secret does not.
func TestPublicKeys(t *testing.T) {
	private, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	der, _ := x509.MarshalPKIXPublicKey(&private.PublicKey)
	public := string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	set, _ := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &private.PublicKey, KeyID: "1", Use: "sig"}}}, error(nil)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, string(jsonOf(t, set)))
	}))
	defer site.Close()
	claims := map[string]any{"sub": "7", "exp": time.Now().Add(time.Hour).Unix(), "call": []string{"test.echo"}}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: private}, (&jose.SignerOptions{}).WithHeader("kid", "1"))
	testkit.Must(t, err)
	signed, err := signer.Sign(jsonOf(t, claims))
	testkit.Must(t, err)
	good, _ := signed.CompactSerialize()
	for name, source := range map[string]string{"file": file(t, public), "variable": "env:THE_KEY", "set": file(t, string(jsonOf(t, set))), "URL": site.URL} {
		_, address := start(t, []string{"THE_KEY=" + public}, "--auth-key", source)
		open(t, address, good).send(call, `{"uri":"test.echo"}`)
		for _, by := range []string{public, strings.TrimSpace(public), string(der), base64.StdEncoding.EncodeToString(der)} {
			_, status, said := knock(t, address, "?token="+sign(by, `{"alg":"HS256","kid":"1"}`, claims), nil)
			testkit.Want(t, status == 401, "%s: a token that is signed with the public key: %d %s", name, status, said)
		}
	}
}

// Mistakes end with one line, before anybody can come in; no line has a secret.
func TestMistakesOfKeys(t *testing.T) {
	private, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	der, _ := x509.MarshalPKCS8PrivateKey(private)
	secretPEM := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	for flags, want := range map[string]string{
		"--auth-secret /does/not/exist":                             "auth.secret: the file cannot be opened: no such file or directory",
		"--auth-secret " + secret:                                   "auth.secret: the file cannot be opened: no such file or directory",
		"--auth-secret /":                                           "auth.secret: the file cannot be read: is a directory",
		"--auth-secret " + file(t, "short"):                         "auth.secret: the secret has 5 bytes, it needs 32",
		"--auth-secret " + file(t, secretPEM):                       "auth.secret: it is a key, not a secret",
		"--auth-secret env:NOT_THERE":                               "auth.secret: the variable is not set",
		"--auth-key " + file(t, secretPEM):                          "auth.key: it is a private key",
		"--auth-key " + file(t, secret):                             "auth.key: it is neither PEM nor a JWK set",
		"--auth-key http://127.0.0.1:1/keys":                        "connection refused",
		"--auth-key http://login.example/keys":                      "auth.key: keys come by https",
		"--auth-key a --auth-secret b":                              "there is auth.key, too (flag --auth-key)",
		"--auth-audience sockets":                                   "nobody is asked for a token",
		"--auth-optional":                                           "nobody is asked for a token",
		"--auth-secret " + file(t, secret) + " --auth-cookie a":     "no origin is listed",
		"--auth-secret " + file(t, secret) + " --auth-cookie a=b":   `"a=b" is not a name of a cookie`,
		"--auth-secret " + file(t, secret) + " --message-rate -1":   `"-1" is out of range`,
		"--auth-secret " + file(t, secret) + " --auth-secrets none": "unknown flag: --auth-secrets",
	} {
		p := harness.StartCLI(t, append([]string{"socket", "serve", "--listen", "127.0.0.1:0"}, strings.Fields(flags)...)...)
		if code := p.ExitCode(harness.Patience); code == 0 || !strings.Contains(p.Log(), want) || strings.Count(p.Log(), "\n") != 1 || strings.Contains(p.Log(), secret) {
			t.Errorf("%s: exit code %d:\n%s", flags, code, p.Log())
		}
	}
}

// The programs of docs/socket-auth.md print tokens that count, for what they say.
func TestDocumentedPrograms(t *testing.T) {
	document := testkit.ReadFile(t, harness.Root(t)+"/docs/socket-auth.md")
	_, address := start(t, nil, "--auth-secret", file(t, secret+"\n"))
	for language, command := range map[string][]string{"ruby": {"ruby", "-e"}, "python": {"python3", "-c"}, "js": {"node", "-e"}} {
		_, program, found := strings.Cut(string(document), "```"+language+"\n")
		program, _, _ = strings.Cut(program, "```\n")
		testkit.Need(t, found, "no program in %s", language)
		folder := t.TempDir()
		testkit.Must(t, os.WriteFile(folder+"/socket.secret", []byte(secret+"\n"), 0o600))
		shell := []string{"-c", `cd "$1" && shift && exec "$@"`, "sh", folder}
		p := harness.StartProcess(t, nil, "/bin/sh", append(append(shell, command...), program)...)
		p.WantExit(harness.Patience, 0)
		s := open(t, address, strings.TrimSpace(p.Output()))
		s.send(call, `{"uri":"test.reverse","args":"abc"}`)
		s.want(ack, `"args":"cba"`)
		s.send(subscribe, `{"channel":"user.8"}`)
		s.want(`"code":403`)
	}
}

// A socket ends with its token.
func TestTokenEndsItsSocket(t *testing.T) {
	c, address := start(t, []string{"THE_SECRET=" + secret}, "--auth-secret", "env:THE_SECRET")
	s := open(t, address, tokenFor(map[string]any{"exp": time.Now().Add(-29 * time.Second).Unix()}))
	s.ws.SetReadDeadline(time.Now().Add(harness.Patience))
	_, _, err := s.ws.ReadMessage()
	testkit.Want(t, websocket.IsCloseError(err, websocket.ClosePolicyViolation), "it has ended by %v", err)
	c.WaitMetric("cabrank_sockets_ended_total", 1, "reason", "expired")
}

// A client of juggler.1 may show its token by its first message, and then a further one.
func TestTokenByAMessage(t *testing.T) {
	c, address := start(t, nil, "--auth-secret", file(t, secret))
	dialer := websocket.Dialer{Subprotocols: []string{"juggler.1"}}
	ws, response, err := dialer.Dial("ws://"+address+"/ws", nil)
	testkit.Must(t, err)
	response.Body.Close()
	defer ws.Close()
	s := &socket{t, ws}
	say := func(message string, wants ...string) {
		t.Helper()
		testkit.Must(t, ws.WriteMessage(websocket.TextMessage, []byte(message)))
		s.want(wants...)
	}
	s.want(`"auth":`)
	say(`{"type":"call","id":1,"uri":"test.echo","args":1}`, `"code":401`)
	say(`{"type":"auth","id":2,"token":"`+tokenFor(map[string]any{"exp": time.Now().Add(-time.Hour).Unix()})+`"}`, `the token has expired`)
	good := tokenFor(map[string]any{"channels": []string{"user.7"}})
	say(`{"type":"auth","id":3,"token":"`+good+`"}`, `{"type":"sub","channel":"user.7"}`, `{"type":"ack","id":3,"user":"7","ttl":36`)
	say(`{"type":"call","id":4,"uri":"test.echo","args":1}`, `"ack"`, `"res"`)
	say(`{"type":"auth","id":5,"token":"`+tokenFor(map[string]any{"sub": "8"})+`"}`, `the token is of another user`)
	say(`{"type":"auth","id":6,"token":"`+tokenFor(map[string]any{"call": []string{}})+`"}`, `{"type":"unsb","channel":"user.7"}`, `"ack"`)
	say(`{"type":"call","id":7,"uri":"test.echo","args":1}`, `"code":403`)
	wantNoSecret(t, c, c.Kill, good)
}
