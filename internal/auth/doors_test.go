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
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/cabrank/cabrank/internal/callers"
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

func (b bearers) Verify(authorization string) (callers.Pass, error) {
	id, err := b.Verifier.Verify(Bearer(authorization))
	if err != nil {
		return callers.Pass{}, err
	}
	return callers.Pass{User: id.User, Until: id.Expires, May: id.MayCall}, nil
}

// askedDoor is a relay on loopback that asks for tokens, with callers and a worker.
type askedDoor struct {
	url    string
	web    map[string]*http.Client // who call by the forms of the web
	caller *testkit.Peer
	accept func() *testkit.Peer
	worker *testkit.Peer // nil: none has come yet
	stream uint32        // of the caller, the next
	taken  uint32        // of the worker, the next
}

func askAtDoor(t *testing.T, v *Verifier) *askedDoor {
	t.Helper()
	const soon = 30 * time.Second
	doors := webdoors.New(webdoors.Options{
		Origins: func() door.Origins { return nil }, Schema: schema.New(schema.Options{Files: described(t)}),
		MayRepeat: func(string) bool { return true }, Log: slog.New(slog.DiscardHandler),
	})
	other := func(head relay.Head) func(*relay.Exchange) {
		if len(head.ContentType) == 0 && string(head.Method) == http.MethodPost {
			return nil // passed on
		}
		return doors.Other(head)
	}
	http1 := web.NewHTTP1(web.Limits{Head: soon, HeadBytes: 32 << 10}, nil, doors.Find, slog.New(slog.DiscardHandler))
	r := relay.New(relay.Options{
		Other: other, HTTP1: func(g *relay.Guest) { http1.ServeConn(g) },
		Shards: 1, QueueLength: 10, QueueTimeout: soon, MinReady: 1, OnCancel: rank.Free, BufferTotal: 64 << 20,
		HeaderList: 32 << 10, MaxStreams: 100, MaxHops: 8, Keys: callers.Keys{By: callers.ByPeer},
		Limits: relay.Limits{Connections: 10, Handshake: soon, Window: 64 << 10, MaxWindow: 1 << 20, Buffer: 16 << 20},
		Log:    slog.New(slog.DiscardHandler), Random: func() float64 { return 0.5 }, Auth: bearers{v},
	})
	ln := testkit.Listen(t)
	served := make(chan error, 1)
	go func() { served <- r.Serve(ln) }() // ended by Close
	t.Cleanup(func() {
		r.Close()
		http1.Close()
		err := <-served
		testkit.Want(t, errors.Is(err, door.ErrClosed), "%v", err)
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

// described has the method that is called, which takes and answers nothing.
func described(t *testing.T) *schema.Files {
	t.Helper()
	set, err := proto.Marshal(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{{
		Name: new("greeter.proto"), Package: new("test"), Syntax: new("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: new("Nothing")}},
		Service: []*descriptorpb.ServiceDescriptorProto{{Name: new("Greeter"), Method: []*descriptorpb.MethodDescriptorProto{
			{Name: new("Hello"), InputType: new(".test.Nothing"), OutputType: new(".test.Nothing")},
		}}},
	}}})
	testkit.Must(t, err)
	name := filepath.Join(t.TempDir(), "greeter.pb")
	testkit.Must(t, os.WriteFile(name, set, 0o600))
	files, err := schema.ReadFiles([]string{name})
	testkit.Must(t, err)
	return files
}

// nothing is the message of all calls as gRPC has it.
const nothing = "\x00\x00\x00\x00\x00"

// webForm is a form in which a call is one request of HTTP. A message of nothing is the same in
// its request and in its answer.
type webForm struct{ name, verb, query, kind, message string }

func webForms() []webForm {
	return []webForm{
		{"gRPC-Web", http.MethodPost, "", "application/grpc-web+proto", nothing},
		{"Connect", http.MethodPost, "", "application/proto", ""},
		{"Connect by GET", http.MethodGet, "?connect=v1&encoding=proto&message=", "", ""},
		{"a stream of Connect", http.MethodPost, "", "application/connect+proto", nothing},
		{"Connect in JSON", http.MethodPost, "", "application/json", "{}"},
		{"a stream of Connect in JSON", http.MethodPost, "", "application/connect+json", "\x00\x00\x00\x00\x02{}"},
	}
}

// framed reports whether an answer ends with a frame that tells how.
func (f webForm) framed() bool { return len(f.message) >= len(nothing) }

// ends returns how an answer must end: behind its message, or, with why, in place of one.
func (f webForm) ends(why string) string {
	text, _ := json.Marshal(why)
	refused := fmt.Sprintf(`{"code":"unauthenticated","message":%s}`, text)
	switch {
	case f.name == "gRPC-Web" && why == "":
		return "200 grpc-status: 0\r\n"
	case f.name == "gRPC-Web":
		return "200 grpc-status: 16\r\ngrpc-message: " + why + "\r\n"
	case f.framed() && why == "":
		return "200 {}"
	case f.framed():
		return `200 {"error":` + refused + `}`
	case why == "":
		return "200 "
	default:
		return "401 " + refused
	}
}

// askByWeb asks in a form, and returns how its answer ends.
func (d *askedDoor) askByWeb(ctx context.Context, by *http.Client, f webForm, token string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, f.verb, d.url+f.query, strings.NewReader(f.message))
	if err != nil {
		return "", err
	}
	if f.kind != "" {
		r.Header.Set("Content-Type", f.kind)
	}
	r.Header.Set("Authorization", strings.TrimSpace("Bearer "+token))
	answer, err := by.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if answer.StatusCode == http.StatusOK {
		text = bytes.TrimPrefix(text, []byte(f.message))
	}
	if f.framed() {
		if len(text) < len(nothing) || text[0] < 2 || int(binary.BigEndian.Uint32(text[1:])) != len(text)-len(nothing) {
			return "", fmt.Errorf("%s, %q, %w", answer.Status, text, err)
		}
		text = text[len(nothing):]
	}
	return fmt.Sprintf("%d %s", answer.StatusCode, text), err
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
	testkit.Want(t, testkit.Value(got, "grpc-status") == "16" && testkit.Value(got, "grpc-message") == want, "gRPC: %v, want %s", got, want)
	stream = d.ask("HTTP", token)
	testkit.Equal(t, testkit.Value(d.caller.WantHeaders(stream, testkit.NoEnd), ":status"), "401", "HTTP")
	d.caller.WantDataBytes(stream, []byte(want+"\n"), testkit.End)
	for version, by := range d.web {
		for _, f := range webForms() {
			if got, err := d.askByWeb(t.Context(), by, f, token); err != nil || got != f.ends(want) {
				t.Errorf("%s over %s: %q, %v, want %s", f.name, version, got, err, want)
			}
		}
	}
}

// wantServed asks by all, and wants the worker to have the calls of a user, and no others.
func (d *askedDoor) wantServed(t *testing.T, token, user string) {
	t.Helper()
	for _, kind := range []string{"gRPC", "HTTP"} {
		stream := d.ask(kind, token)
		d.serve(t, kind, user, testkit.End)
		d.caller.WantHeaders(stream, testkit.NoEnd)
		d.caller.WantDataBytes(stream, []byte(nothing), testkit.NoEnd)
		d.caller.WantHeaders(stream, testkit.End)
	}
	for version, by := range d.web {
		for _, f := range webForms() {
			told := make(chan string, 1)
			go func() { // ends with the answer
				got, err := d.askByWeb(t.Context(), by, f, token)
				told <- fmt.Sprint(got, err)
			}()
			d.serve(t, f.name+" over "+version, user, testkit.NoEnd)
			testkit.Equal(t, <-told, f.ends("")+"<nil>", "%s over %s", f.name, version)
		}
	}
}

// serve has the worker answer its next call, which has a message unless its head ends it.
func (d *askedDoor) serve(t *testing.T, kind, user string, end testkit.EndStream) {
	t.Helper()
	if d.worker == nil {
		d.worker = d.accept()
		d.worker.Greet()
		d.worker.Skip(testkit.WindowUpdate)
	}
	testkit.Equal(t, testkit.Value(d.worker.WantHeaders(d.taken, end), "x-cabrank-user"), user, "%s: the worker is told", kind)
	if !end {
		d.worker.WantDataBytes(d.taken, []byte(nothing), testkit.End)
	}
	d.worker.WriteHeaders(d.taken, testkit.NoEnd, ":status", "200", "content-type", "application/grpc")
	d.worker.WriteData(d.taken, testkit.NoEnd, []byte(nothing))
	d.worker.WriteHeaders(d.taken, testkit.End, "grpc-status", "0")
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
	testkit.Must(t, v.Replace(Options{Secret: []byte(other), Defaults: all}))
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
