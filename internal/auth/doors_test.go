package auth

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/cabrank/cabrank/internal/door"
	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/relay"
	"github.com/cabrank/cabrank/internal/schema"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/web"
	"github.com/cabrank/cabrank/internal/webdoors"
)

// bearers asks calls for their token, as cabrank run has it.
type bearers struct{ *Verifier }

func (b bearers) Verify(authorization string) (relay.Pass, error) {
	id, err := b.Verifier.Verify(Bearer(authorization))
	if err != nil {
		return relay.Pass{}, err
	}
	return relay.Pass{User: id.User, Until: id.Expires, May: id.MayCall}, nil
}

// askedDoor is a relay on loopback that asks for tokens, with callers and a worker.
type askedDoor struct {
	url    string
	web    map[string]*http.Client // who call by gRPC-Web
	caller *testkit.Peer
	accept func() *testkit.Peer
	worker *testkit.Peer // nil: none has come yet
	stream uint32        // of the caller, the next
	taken  uint32        // of the worker, the next
}

func askAtDoor(t *testing.T, v *Verifier) *askedDoor {
	t.Helper()
	const soon = 30 * time.Second
	doors := webdoors.New(webdoors.Options{Origins: func() door.Origins { return nil }, Schema: schema.New(schema.Options{}), Log: slog.New(slog.DiscardHandler)})
	other := func(head relay.Head) func(*relay.Exchange) {
		if len(head.ContentType) == 0 {
			return nil // passed on
		}
		return doors.Other(head)
	}
	http1 := web.NewHTTP1(web.Limits{Head: soon, HeadBytes: 32 << 10}, nil, doors.Find, slog.New(slog.DiscardHandler))
	r := relay.New(relay.Options{
		Other: other, HTTP1: func(g *relay.Guest) { http1.ServeConn(g) },
		Shards: 1, QueueLength: 10, QueueTimeout: soon, MinReady: 1, OnCancel: rank.Free, BufferTotal: 64 << 20,
		HeaderList: 32 << 10, MaxStreams: 100, MaxHops: 8, Keys: relay.Keys{By: relay.ByPeer},
		Limits: relay.Limits{Connections: 10, Handshake: soon, Window: 64 << 10, MaxWindow: 1 << 20, Buffer: 16 << 20},
		Log:    slog.New(slog.DiscardHandler), Random: func() float64 { return 0.5 }, Auth: bearers{v},
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- r.Serve(ln) }() // ended by Close
	t.Cleanup(func() {
		r.Close()
		http1.Close()
		if err := <-served; !errors.Is(err, door.ErrClosed) {
			t.Error(err)
		}
	})
	addr, accept := testkit.ListenWorker(t)
	r.Up(r.AddEndpoint("w1", 1, true), "tcp", addr)
	d := &askedDoor{
		url: "http://" + ln.Addr().String() + "/test.Greeter/Hello", web: map[string]*http.Client{"HTTP/1": webCaller(t, false), "HTTP/2": webCaller(t, true)},
		caller: testkit.DialCaller(t, ln.Addr().String()), accept: accept, stream: 1, taken: 1,
	}
	d.caller.Greet()
	d.caller.Skip(testkit.WindowUpdate)
	return d
}

func webCaller(t *testing.T, http2 bool) *http.Client {
	t.Helper()
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!http2)
	protocols.SetUnencryptedHTTP2(http2)
	transport := &http.Transport{Protocols: protocols}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// askByWeb asks by gRPC-Web, and returns the trailers of the answer, which has no message.
func (d *askedDoor) askByWeb(ctx context.Context, by *http.Client, token string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, d.url, http.NoBody)
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/grpc-web+proto")
	r.Header.Set("Authorization", strings.TrimSpace("Bearer "+token))
	answer, err := by.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	frame, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK || len(frame) < 5 || frame[0] != 0x80 || int(binary.BigEndian.Uint32(frame[1:])) != len(frame)-5 {
		return "", fmt.Errorf("%s, %q, %w", answer.Status, frame, err)
	}
	return string(frame[5:]), nil
}

func (d *askedDoor) ask(kind, token string) (stream uint32) {
	fields := []string{":method", "POST", ":scheme", "http", ":path", "/test.Greeter/Hello", ":authority", "x"}
	if kind == "gRPC" {
		fields = append(fields, "content-type", "application/grpc", "te", "trailers")
	}
	stream, d.stream = d.stream, d.stream+2
	d.caller.WriteHeaders(stream, testkit.End, append(fields, "authorization", strings.TrimSpace("Bearer "+token))...)
	return stream
}

// wantRefused asks by all kinds of calls, and wants the reason.
func (d *askedDoor) wantRefused(t *testing.T, token string, why error) {
	t.Helper()
	want := "cabrank: no token that counts: " + why.Error()
	stream := d.ask("gRPC", token)
	got := d.caller.WantHeaders(stream, testkit.End)
	if testkit.Value(got, "grpc-status") != "16" || testkit.Value(got, "grpc-message") != want {
		t.Errorf("gRPC: %v, want %s", got, want)
	}
	stream = d.ask("HTTP", token)
	if got := testkit.Value(d.caller.WantHeaders(stream, testkit.NoEnd), ":status"); got != "401" {
		t.Errorf("HTTP: %s", got)
	}
	d.caller.WantDataBytes(stream, []byte(want+"\n"), testkit.End)
	for name, by := range d.web {
		if got, err := d.askByWeb(t.Context(), by, token); err != nil || got != "grpc-status: 16\r\ngrpc-message: "+want+"\r\n" {
			t.Errorf("gRPC-Web over %s: %q, %v, want %s", name, got, err, want)
		}
	}
}

// wantServed asks by all, and wants the worker to have the calls of a user, and no others.
func (d *askedDoor) wantServed(t *testing.T, token, user string) {
	t.Helper()
	for _, kind := range []string{"gRPC", "HTTP"} {
		stream := d.ask(kind, token)
		d.serve(t, kind, user)
		d.caller.WantHeaders(stream, testkit.End)
	}
	for name, by := range d.web {
		told := make(chan string, 1)
		go func() { // ends with the answer
			got, err := d.askByWeb(t.Context(), by, token)
			told <- fmt.Sprint(got, err)
		}()
		d.serve(t, "gRPC-Web over "+name, user)
		if got := <-told; got != "grpc-status: 0\r\n<nil>" {
			t.Errorf("gRPC-Web over %s: %q", name, got)
		}
	}
}

// serve has the worker answer its next call.
func (d *askedDoor) serve(t *testing.T, kind, user string) {
	t.Helper()
	if d.worker == nil {
		d.worker = d.accept()
		d.worker.Greet()
		d.worker.Skip(testkit.WindowUpdate)
	}
	if got := testkit.Value(d.worker.WantHeaders(d.taken, testkit.End), "x-cabrank-user"); got != user {
		t.Errorf("%s: the worker is told %s", kind, got)
	}
	d.worker.WriteHeaders(d.taken, testkit.End, ":status", "200", "grpc-status", "0")
	d.taken += 2
}

// No forgery comes through any door, and what is good does beside it. A blank before the
// token is no forgery here: fields have them.
func TestForgedTokensAtDoors(t *testing.T) {
	testkit.CheckLeaks(t)
	for name, tc := range forgeries(t) {
		if name == "blanks" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			tc.options.Defaults = Rules{Call: []string{"*"}}
			v := verifier(t, tc.options)
			d := askAtDoor(t, v)
			d.wantRefused(t, tc.token, tc.err)
			d.wantRefused(t, "", errNone)
			by, algorithm := any([]byte(secret)), jose.HS256
			if tc.options.Secret == nil {
				by, algorithm = keys().rsa, jose.RS256
				if bytes.HasPrefix(tc.options.Keys, public(t, keys().ec)) {
					by, algorithm = keys().ec, jose.ES256
				}
			}
			d.wantServed(t, sign(t, algorithm, by, "", claims(nil)), "u1")
		})
	}
}

// Claims at the edges of clocks hold at doors as for sockets.
func TestExpiryAtDoors(t *testing.T) {
	d := askAtDoor(t, verifier(t, Options{Secret: []byte(secret), Defaults: Rules{Call: []string{"*"}}}))
	of := func(changes map[string]any) string {
		text, _ := json.Marshal(claims(changes))
		return forge([]byte(secret), `{"alg":"HS256"}`, string(text))
	}
	d.wantRefused(t, of(map[string]any{"exp": time.Now().Add(-32 * time.Second).Unix()}), errExpired)
	d.wantRefused(t, of(map[string]any{"nbf": time.Now().Add(35 * time.Second).Unix()}), errEarly)
	d.wantRefused(t, of(map[string]any{"aud": "others"}), errAudience)
	d.wantServed(t, of(map[string]any{"exp": time.Now().Add(-25 * time.Second).Unix()}), "u1")
}

// Keys that are replaced, by a reload, hold for the next call of a connection; those of a
// URL as soon as a token names one that is not known.
func TestKeysChangeAtDoors(t *testing.T) {
	all := Rules{Call: []string{"*"}}
	text, _ := json.Marshal(claims(nil))
	other := strings.Repeat("fedcba9876543210", 4)
	old, fresh := forge([]byte(secret), `{"alg":"HS256"}`, string(text)), forge([]byte(other), `{"alg":"HS256"}`, string(text))
	v := verifier(t, Options{Secret: []byte(secret), Defaults: all})
	d := askAtDoor(t, v)
	d.wantServed(t, old, "u1")
	d.wantRefused(t, fresh, errKey)
	if err := v.Replace(Options{Secret: []byte(other), Defaults: all}); err != nil {
		t.Fatal(err)
	}
	d.wantRefused(t, old, errKey)
	d.wantServed(t, fresh, "u1")

	var served atomic.Pointer[[]byte]
	first := jwks(t, jose.JSONWebKey{Key: keys().ec.Public(), KeyID: "1"})
	served.Store(&first)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(*served.Load()) }))
	defer server.Close()
	d = askAtDoor(t, verifier(t, Options{URL: server.URL, Defaults: all}))
	d.wantServed(t, sign(t, jose.ES256, keys().ec, "1", claims(nil)), "u1")
	d.wantRefused(t, sign(t, jose.EdDSA, keys().ed, "2", claims(nil)), errKey) // it was asked a moment ago
}
