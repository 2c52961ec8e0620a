package auth

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/cabrank/cabrank/internal/testkit"
)

// publisher is a server of keys in memory, for tests whose time is that of a bubble.
type publisher struct {
	mu      sync.Mutex
	content []byte
	status  int
	takes   time.Duration
	asked   int
}

func (p *publisher) RoundTrip(r *http.Request) (*http.Response, error) {
	p.mu.Lock()
	p.asked++
	content, status, takes := p.content, p.status, p.takes
	p.mu.Unlock()
	select {
	case <-time.After(takes):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	return &http.Response{StatusCode: status, Status: strconv.Itoa(status), Body: io.NopCloser(bytes.NewReader(content)), Request: r}, nil
}

func (p *publisher) now(content []byte, status int, takes time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.content, p.status, p.takes, p.asked = content, status, takes, 0
}

func (p *publisher) times() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

// openPublisher returns the keys of p.
func openPublisher(t *testing.T, p *publisher, log *slog.Logger) *remote {
	t.Helper()
	r := newRemote("https://keys.example/jwks", log, func() {})
	r.client.Transport = p
	testkit.Must(t, r.open())
	return r
}

// Keys are fetched again when a token names one that is not known, and when they are old;
// however many such tokens come, once in ten seconds.
func TestKeysOfAURL(t *testing.T) {
	k := keys()
	first := jwks(t, jose.JSONWebKey{Key: k.rsa.Public(), KeyID: "1"})
	second := jwks(t, jose.JSONWebKey{Key: k.ec.Public(), KeyID: "2"})
	synctest.Test(t, func(t *testing.T) {
		p, log := &publisher{content: first, status: 200}, &bytes.Buffer{}
		r := openPublisher(t, p, slog.New(slog.NewTextHandler(log, nil)))
		has := func(id string, want bool) {
			t.Helper()
			testkit.Equal(t, len(r.find(id)) == 1, want, "key %s", id)
		}
		asked := func(want int) {
			t.Helper()
			testkit.Equal(t, p.times(), want, "times asked")
		}
		has("1", true)
		asked(1)

		p.now(second, 200, time.Second)
		has("2", false) // it was asked a moment ago
		asked(0)
		time.Sleep(fetchPause) //nolint:forbidigo // the time of the bubble
		var all sync.WaitGroup
		began := time.Now()
		for range 100 {
			all.Go(func() { has("2", true) }) // all wait for one answer
		}
		has("1", true) // who needs nothing waits for nothing
		testkit.Want(t, time.Since(began) == 0, "a known key had to wait")
		all.Wait()
		asked(1)
		has("1", false)

		p.now(first, 500, 0)
		for i := range 1000 { // tokens with keys that were made up
			has("x"+strconv.Itoa(i), false)
			time.Sleep(100 * time.Millisecond) //nolint:forbidigo // the time of the bubble
		}
		asked(9)
		has("2", true)
		testkit.Want(t, strings.Contains(log.String(), "cannot fetch token keys"), "the log: %s", log)

		p.now(first, 200, time.Minute) // who publishes them does not answer
		time.Sleep(keysAge)            //nolint:forbidigo // the time of the bubble
		began = time.Now()
		has("2", true)
		testkit.Equal(t, time.Since(began), fetchTime, "the wait")
		has("2", true)
		asked(1)
		p.now(first, 200, 0)
		time.Sleep(fetchPause) //nolint:forbidigo // the time of the bubble
		has("2", false)        // withdrawn
		has("1", true)
	})
}

// A weak key among those of a URL is told once, until others are left out.
func TestKeysLeftOutOfAURLAreToldOnce(t *testing.T) {
	k := keys()
	small, _ := rsa.GenerateKey(rand.Reader, 1024)
	good, other := jose.JSONWebKey{Key: k.ec.Public(), KeyID: "e"}, jose.JSONWebKey{Key: k.rsa.Public(), KeyID: "r"}
	weak, second := jose.JSONWebKey{Key: small.Public(), KeyID: "w1"}, jose.JSONWebKey{Key: small.Public(), KeyID: "w2"}
	synctest.Test(t, func(t *testing.T) {
		p, log := &publisher{content: jwks(t, good, weak), status: 200}, &bytes.Buffer{}
		r := openPublisher(t, p, slog.New(slog.NewTextHandler(log, nil)))
		wantTold := func(want int, set ...jose.JSONWebKey) {
			t.Helper()
			p.now(jwks(t, set...), 200, 0)
			time.Sleep(fetchPause) //nolint:forbidigo // the time of the bubble
			r.find("x")
			testkit.Equal(t, strings.Count(log.String(), "keys of tokens are left out"), want, "times told, in\n%s", log)
		}
		wantTold(1, good, weak)
		wantTold(1, good, other, weak)
		wantTold(2, good, weak, second)
		wantTold(2, good)
		wantTold(3, good, weak)
		testkit.Want(t, strings.Contains(log.String(), "w2") && !strings.Contains(log.String(), "AQAB"), "the log: %s", log)
	})
}

// An answer that is none is one line, at the start.
func TestWrongURLs(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/keys", http.StatusFound) })
	mux.HandleFunc("/long", func(w http.ResponseWriter, _ *http.Request) { w.Write(bytes.Repeat([]byte(" "), mostKeyBytes+1)) })
	mux.HandleFunc("/html", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") })
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		w.Write(jwks(t, jose.JSONWebKey{Key: keys().ec.Public(), KeyID: "1"}))
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	for address, want := range map[string]string{
		server.URL + "/moved":                     "redirects are not followed",
		server.URL + "/long":                      "the answer is longer than 1 MiB",
		server.URL + "/html":                      "it is no JWK set",
		server.URL + "/none":                      "the answer is 404 Not Found",
		"http://127.0.0.1:1/keys":                 "connection refused",
		"http://keys.example/jwks":                "keys come by https, or by http from this host alone",
		"ftp://localhost/jwks":                    "keys come by https, or by http from this host alone",
		"https://user:password@keys.example/jwks": "it is no URL of keys",
		"https://":                                "it is no URL of keys",
	} {
		_, err := New(Options{URL: address, Log: slog.New(slog.DiscardHandler)})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "password") {
			t.Errorf("%s: %v, want %s", address, err, want)
		}
	}
	v := verifier(t, Options{URL: server.URL + "/keys", Log: slog.New(slog.DiscardHandler)})
	_, err := v.Verify(sign(t, jose.ES256, keys().ec, "1", claims(nil)))
	testkit.Want(t, err == nil, "%v", err)
}
