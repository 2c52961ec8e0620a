//go:build soak

package web_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

const (
	workService = "/cabrank.example.v1.Work/"
	// timeout is what every call says that it may take.
	timeout = 10 * time.Second
)

// caller calls Io, or Count, whose worker pauses if it is asked to, and returns when the call
// has ended or its context, by which it leaves.
type caller func(ctx context.Context, stream bool, millis uint32) error

// way is one way to call Work.
type way struct {
	name      string
	onlyUnary bool
	open      func(t *testing.T) caller // makes what can be there before a call: a connection
}

// waysTo are all that there are.
func waysTo(addr string) []way {
	ways := []way{{name: "gRPC", open: func(t *testing.T) caller { t.Helper(); return byGRPC(harness.Dial(t, addr)) }}}
	for _, http2 := range []bool{false, true} {
		for _, f := range []form{
			{name: "gRPC-Web", framed: true, kind: "application/grpc-web+proto"},
			{name: "gRPC-Web, text", framed: true, text: true, kind: "application/grpc-web-text+proto"},
			{name: "Connect", kind: "application/proto"},
			{name: "Connect by GET", kind: "application/proto", get: true},
			{name: "Connect in JSON", json: true, kind: "application/json"},
		} {
			f.addr, f.http2 = addr, http2
			version := "1.1"
			if http2 {
				version = "2"
			}
			ways = append(ways, way{f.name + ", HTTP/" + version, f.get, f.open})
		}
	}
	return append(ways, way{name: "WebSocket", open: func(t *testing.T) caller { t.Helper(); return bySocket(t, addr) }})
}

func byGRPC(conn *grpc.ClientConn) caller {
	client := workpb.NewWorkClient(conn)
	return func(ctx context.Context, stream bool, millis uint32) error {
		if !stream {
			_, err := client.Io(ctx, &workpb.IoRequest{Millis: millis})
			return err
		}
		numbers, err := client.Count(ctx, &workpb.CountRequest{To: 1, PauseMillis: millis})
		for err == nil {
			_, err = numbers.Recv()
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	}
}

// form is one of those in which a call is a request of HTTP.
type form struct {
	name, addr, kind               string
	framed, text, json, get, http2 bool
}

func (f form) open(t *testing.T) caller {
	t.Helper()
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!f.http2)
	protocols.SetUnencryptedHTTP2(f.http2)
	transport := &http.Transport{Protocols: protocols, DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport}
	return func(ctx context.Context, stream bool, millis uint32) error {
		r, err := f.request(ctx, stream, millis)
		if err != nil {
			return err
		}
		answer, err := client.Do(r)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return errors.New(answer.Status)
		}
		_, err = io.Copy(io.Discard, answer.Body)
		return err
	}
}

func (f form) request(ctx context.Context, stream bool, millis uint32) (*http.Request, error) {
	method, message := "Io", proto.Message(&workpb.IoRequest{Millis: millis})
	if stream {
		method, message = "Count", &workpb.CountRequest{To: 1, PauseMillis: millis}
	}
	body, err := f.encode(message, stream)
	if err != nil {
		return nil, err
	}
	verb, url, kind := http.MethodPost, "http://"+f.addr+workService+method, f.kind
	if f.get {
		verb, url, body = http.MethodGet, url+"?connect=v1&encoding=proto&base64=1&message="+base64.RawURLEncoding.EncodeToString(body), nil
	}
	if stream && !f.framed {
		kind = strings.Replace(kind, "/", "/connect+", 1)
	}
	r, err := http.NewRequestWithContext(ctx, verb, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", kind)
	if f.framed {
		r.Header.Set("Grpc-Timeout", fmt.Sprintf("%dm", timeout.Milliseconds()))
	} else {
		r.Header.Set("Connect-Timeout-Ms", fmt.Sprint(timeout.Milliseconds()))
	}
	return r, nil
}

// encode is the body of a request.
func (f form) encode(message proto.Message, stream bool) (b []byte, err error) {
	if f.json {
		b, err = protojson.Marshal(message)
	} else {
		b, err = proto.Marshal(message)
	}
	if f.framed || stream {
		b = append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(b))), b...)
	}
	if f.text {
		b = []byte(base64.StdEncoding.EncodeToString(b))
	}
	return b, err
}

// bySocket returns a caller that leaves by the end of its socket.
func bySocket(t *testing.T, addr string) caller {
	t.Helper()
	dialer := websocket.Dialer{Subprotocols: []string{"juggler.1"}}
	ws, response, err := dialer.Dial("ws://"+addr+"/ws", nil)
	testkit.Must(t, err)
	response.Body.Close()
	t.Cleanup(func() { ws.Close() })
	id := 0
	return func(ctx context.Context, stream bool, millis uint32) error {
		id++
		call := map[string]any{"type": "call", "id": id, "uri": workService + "Io", "args": map[string]any{"millis": millis}, "timeout": timeout.Milliseconds()}
		if stream {
			call["uri"], call["args"], call["credit"] = workService+"Count", map[string]any{"to": 1, "pauseMillis": millis}, 10
		}
		defer context.AfterFunc(ctx, func() { ws.Close() })()
		if err := ws.WriteJSON(call); err != nil {
			return err
		}
		for {
			_, text, err := ws.ReadMessage()
			if err != nil {
				return err
			}
			var m struct {
				Type  string          `json:"type"`
				More  bool            `json:"more"`
				Error json.RawMessage `json:"error"`
			}
			switch err := json.Unmarshal(text, &m); {
			case err != nil:
				return err
			case m.Type == "nack", m.Type == "exp", m.Error != nil:
				return fmt.Errorf("%s", text)
			case m.Type == "res" && !m.More:
				return nil
			}
		}
	}
}
