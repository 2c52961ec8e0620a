package push

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/cabrank/cabrank/internal/push/pushpb"
	"github.com/cabrank/cabrank/internal/socket"
	"github.com/cabrank/cabrank/internal/testkit"
)

// noted is sockets that note what is asked of them, as JSON.
type noted struct {
	mu    sync.Mutex
	asked []string
	fails error
}

func (n *noted) note(what string) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked = append(n.asked, what)
	return "id", n.fails
}

// Publish implements Sockets.
func (n *noted) Publish(_ context.Context, channel string, args json.RawMessage) (string, error) {
	if channel == "juggler.1:x" {
		return "", socket.ErrOwnChannel
	}
	return n.note("publish " + channel + " " + string(args))
}

// Command implements Sockets.
func (n *noted) Command(_ context.Context, c socket.Command) (string, error) {
	text, _ := json.Marshal(c)
	return n.note(string(text))
}

func (n *noted) take() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	defer func() { n.asked = nil }()
	return strings.Join(n.asked, "; ")
}

func (n *noted) fail(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fails = err
}

const token = "a token of 16 bytes"

// serve starts a server, and returns its address.
func serve(t *testing.T, token string) (to *noted, address string) {
	t.Helper()
	to, _, address = serveTo(t, token)
	return to, address
}

func serveTo(t *testing.T, token string) (to *noted, server *Server, address string) {
	t.Helper()
	testkit.CheckLeaks(t)
	to = new(noted)
	on := testkit.Listen(t)
	server = Serve(on, to, token, slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		_ = server.Shutdown(context.Background())
	})
	return to, server, on.Addr().String()
}

// A stop waits for no connection without a request.
func TestShutdown(t *testing.T) {
	_, server, address := serveTo(t, "")
	silent, err := net.Dial("tcp", address)
	testkit.Must(t, err)
	defer silent.Close()
	client := dial(t, address) // stays connected
	_, err = client.Publish(t.Context(), &pushpb.PublishRequest{Channel: "c"}, grpc.WaitForReady(true))
	testkit.Must(t, err)
	testkit.Eventually(t, 20*time.Second, "both connections", func() bool { return server.conns.count() == 2 })
	ctx, cancel := context.WithTimeout(context.Background(), headerTime/2)
	defer cancel()
	err = server.Shutdown(ctx)
	testkit.Want(t, err == nil && ctx.Err() == nil, "%v, %v", err, ctx.Err())
	testkit.Must(t, <-server.Failed())
}

// Each request over HTTP, and what is wrong with others.
func TestRequestsOverHTTP(t *testing.T) {
	to, address := serve(t, "")
	for name, tc := range map[string]struct {
		path, body string
		status     int
		says       string // asked of the sockets, or in the answer
	}{
		"publish":                {"publish", `{"channel":"c","args":{"a":[1]}}`, 200, `publish c {"a":[1]}`},
		"publish nothing":        {"publish", `{"channel":""}`, 200, `publish  `},
		"publish null":           {"publish", `{"channel":"c","args":null}`, 200, `publish c null`},
		"broadcast to a user":    {"broadcast", `{"user":"u","channel":"c","args":1}`, 200, `{"action":"broadcast","user":"u","channel":"c","args":1}`},
		"broadcast to a socket":  {"broadcast", `{"connection":"x","channel":"c"}`, 200, `{"action":"broadcast","connection":"x","channel":"c"}`},
		"broadcast to all":       {"broadcast", `{"everyone":true,"channel":"c"}`, 200, `{"action":"broadcast","everyone":true,"channel":"c"}`},
		"disconnect":             {"disconnect", `{"user":"u","code":4001,"reason":"paid"}`, 200, `{"action":"disconnect","user":"u","code":4001,"reason":"paid"}`},
		"unsubscribe":            {"unsubscribe", `{"user":"u","channel":"c*","pattern":true}`, 200, `{"action":"unsubscribe","user":"u","channel":"c*","pattern":true}`},
		"own channel":            {"publish", `{"channel":"juggler.1:x"}`, 400, "the server's own"},
		"publish to a user":      {"publish", `{"channel":"c","user":"u"}`, 400, "have no place here"},
		"no channel":             {"publish", `{"args":1}`, 400, "channel is missing"},
		"to nobody":              {"broadcast", `{"channel":"c"}`, 400, "want one of user and connection"},
		"to two":                 {"broadcast", `{"channel":"c","user":"u","everyone":true}`, 400, "want one of user and connection"},
		"disconnect everyone":    {"disconnect", `{"everyone":true}`, 400, "everyone has no place here"},
		"code of the protocol":   {"disconnect", `{"user":"u","code":1006}`, 400, "want 1000, 1008"},
		"long reason":            {"disconnect", `{"user":"u","reason":"` + strings.Repeat("x", 124) + `"}`, 400, "longer than 123"},
		"long name":              {"publish", `{"channel":"` + strings.Repeat("x", 1025) + `"}`, 400, "longer than 1,024"},
		"slip of the pen":        {"publish", `{"chanel":"c"}`, 400, "chanel"},
		"no JSON":                {"publish", `channel=c`, 400, "invalid character"},
		"nothing at all":         {"publish", ``, 400, `"want a JSON object"`},
		"a list":                 {"publish", `[]`, 400, `"want a JSON object"`},
		"a text for a number":    {"disconnect", `{"user":"u","code":"x"}`, 400, `"code: not a whole number"`},
		"a number with a power":  {"disconnect", `{"user":"u","code":1e3}`, 400, `"code: not a whole number"`},
		"a number for a text":    {"publish", `{"channel":7}`, 400, `"channel: not a text"`},
		"a number for a yes":     {"broadcast", `{"everyone":1,"channel":"c"}`, 400, `"everyone: not true or false"`},
		"two objects":            {"publish", `{"channel":"c"}{}`, 400, "more than one"},
		"too long":               {"publish", `{"channel":"c","args":"` + strings.Repeat("x", 1<<20) + `"}`, 413, "longer than 1 MiB"},
		"another path":           {"subscribe", `{}`, 404, "want /v1/publish"},
		"code of another action": {"unsubscribe", `{"user":"u","channel":"c","code":1000}`, 400, "code and reason"},
	} {
		t.Run(name, func(t *testing.T) {
			status, answer := post(t, address, tc.path, tc.body, "application/json", nil)
			testkit.Want(t, strings.Contains(answer, `{"id":"id"}`) == (status == 200 && (tc.path == "publish" || tc.path == "broadcast")),
				"answered %s", answer)
			if got := to.take(); status != tc.status || status == 200 && got != tc.says || status != 200 && (!strings.Contains(answer, tc.says) || got != "") {
				t.Errorf("%d %s, asked %s", status, answer, got)
			}
		})
	}
	if status, answer := post(t, address, "publish", `{"channel":"c"}`, "text/plain", nil); status != 415 {
		t.Errorf("text: %d %s", status, answer)
	}
	if status, answer := post(t, address, "publish", `{"channel":"c"}`, "application/json", http.Header{"Origin": {"http://x"}}); status != 403 {
		t.Errorf("of a page: %d %s", status, answer)
	}
	for failure, says := range map[error]string{errors.New("redis at 10.0.0.1"): "the broker cannot be reached", context.DeadlineExceeded: "it is not known"} {
		to.fail(failure)
		if status, answer := post(t, address, "publish", `{"channel":"c"}`, "application/json", nil); status != 503 || !strings.Contains(answer, says) {
			t.Errorf("%v: %d %s", failure, status, answer)
		}
	}
}

func post(t *testing.T, address, path, body, kind string, more http.Header) (status int, answer string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/v1/"+path, strings.NewReader(body))
	testkit.Must(t, err)
	if more != nil {
		r.Header = more.Clone()
	}
	r.Header.Set("Content-Type", kind)
	response, err := http.DefaultClient.Do(r)
	testkit.Must(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	testkit.Must(t, err)
	return response.StatusCode, string(text)
}

func dial(t *testing.T, address string) pushpb.PushClient {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	testkit.Must(t, err)
	t.Cleanup(func() { conn.Close() })
	return pushpb.NewPushClient(conn)
}

// The same over gRPC, with its codes, in the order in which they were asked.
func TestRequestsOverGRPC(t *testing.T) {
	to, address := serve(t, "")
	client := dial(t, address)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	reply, err := client.Publish(ctx, &pushpb.PublishRequest{Channel: "c", Args: `[1]`})
	testkit.Need(t, err == nil && reply.GetId() == "id", "%v, %v", reply, err)
	_, err1 := client.Broadcast(ctx, &pushpb.BroadcastRequest{To: &pushpb.BroadcastRequest_Everyone{Everyone: true}, Channel: "c"})
	_, err2 := client.Disconnect(ctx, &pushpb.DisconnectRequest{To: &pushpb.DisconnectRequest_Connection{Connection: "x"}, Code: 1008})
	_, err3 := client.Unsubscribe(ctx, &pushpb.UnsubscribeRequest{To: &pushpb.UnsubscribeRequest_User{User: "u"}, Channel: "c"})
	testkit.Must(t, errors.Join(err1, err2, err3))
	want := `publish c [1]; {"action":"broadcast","everyone":true,"channel":"c"}; {"action":"disconnect","connection":"x","code":1008}; {"action":"unsubscribe","user":"u","channel":"c"}`
	testkit.Equal(t, to.take(), want, "asked")
	_, err = client.Publish(ctx, &pushpb.PublishRequest{Channel: "c", Args: `no JSON`})
	testkit.Want(t, status.Code(err) == codes.InvalidArgument, "no JSON: %v", err)
	_, err = client.Publish(ctx, &pushpb.PublishRequest{Channel: "c", Args: strings.Repeat("1", 1<<20)})
	testkit.Want(t, status.Code(err) == codes.ResourceExhausted, "too long: %v", err)
	to.fail(errors.New("gone"))
	_, err = client.Disconnect(ctx, &pushpb.DisconnectRequest{To: &pushpb.DisconnectRequest_User{User: "u"}})
	testkit.Want(t, status.Code(err) == codes.Unavailable, "no broker: %v", err)
}

// With a token nothing is done without it.
func TestToken(t *testing.T) {
	to, address := serve(t, token)
	client := dial(t, address)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for given, right := range map[string]bool{"Bearer " + token: true, "bearer " + token: true, "Bearer wrong": false, token: false, "": false} {
		status, answer := post(t, address, "publish", `{"channel":"c"}`, "application/json", http.Header{"Authorization": {given}})
		if (status == 200) != right || !right && status != 401 || strings.Contains(answer, token) {
			t.Errorf("%q: %d %s", given, status, answer)
		}
		_, err := client.Publish(metadata.AppendToOutgoingContext(ctx, "authorization", given), &pushpb.PublishRequest{Channel: "c"})
		if (err == nil) != right || !right && codeOf(err) != codes.Unauthenticated {
			t.Errorf("%q over gRPC: %v", given, err)
		}
		got := to.take()
		testkit.Want(t, (got != "") == right, "%q: asked %s", given, got)
	}
}

func codeOf(err error) codes.Code { return status.Code(err) }

// However many connections say nothing, who has something to say comes in: the oldest of
// them gives way, and the others end.
func TestConnectionsAreBounded(t *testing.T) {
	_, server, address := serveTo(t, "")
	var held []net.Conn
	t.Cleanup(func() {
		for _, nc := range held {
			nc.Close()
		}
	})
	for range mostConnections {
		nc := testkit.Dial(t, address)
		held = append(held, nc)
	}
	status, answer := post(t, address, "publish", `{"channel":"c"}`, "application/json", nil)
	testkit.Want(t, status == http.StatusOK, "one more: %d %s", status, answer)
	for _, nc := range []net.Conn{held[0], held[1]} {
		testkit.Must(t, nc.SetReadDeadline(time.Now().Add(20*time.Second)))
		_, err := nc.Read(make([]byte, 1))
		testkit.Want(t, errors.Is(err, io.EOF), "a silent one has not ended: %v", err)
	}
	testkit.Eventually(t, 20*time.Second, "the others to end", func() bool { return server.conns.count() == 1 })
}
