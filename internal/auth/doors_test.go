package auth

import (
	"bytes"
	"encoding/json"
	"errors"
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
	"github.com/cabrank/cabrank/internal/testkit"
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

// askedDoor is a relay on loopback that asks for tokens, with a caller and a worker.
type askedDoor struct {
	caller *testkit.Peer
	accept func() *testkit.Peer
	worker *testkit.Peer // nil: none has come yet
	stream uint32        // of the caller, the next
	taken  uint32        // of the worker, the next
}

func askAtDoor(t *testing.T, v *Verifier) *askedDoor {
	t.Helper()
	const soon = 30 * time.Second
	r := relay.New(relay.Options{
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
		if err := <-served; !errors.Is(err, door.ErrClosed) {
			t.Error(err)
		}
	})
	addr, accept := testkit.ListenWorker(t)
	r.Up(r.AddEndpoint("w1", 1, true), "tcp", addr)
	d := &askedDoor{caller: testkit.DialCaller(t, ln.Addr().String()), accept: accept, stream: 1, taken: 1}
	d.caller.Greet()
	d.caller.Skip(testkit.WindowUpdate)
	return d
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

// wantRefused asks by both kinds of calls, and wants the reason.
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
}

// wantServed asks by both, and wants the worker to have the calls of a user.
func (d *askedDoor) wantServed(t *testing.T, token, user string) {
	t.Helper()
	for _, kind := range []string{"gRPC", "HTTP"} {
		stream := d.ask(kind, token)
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
		d.caller.WantHeaders(stream, testkit.End)
	}
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
