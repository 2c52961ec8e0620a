package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/gomodule/redigo/redis"
	"github.com/gorilla/websocket"

	"github.com/cabrank/cabrank/test/oldjuggler"
)

// play is one of the processes that this program starts; it ends when it is killed. It
// says first where it is.
func play(ctx context.Context, role, socket string) error {
	dial := func() (redis.Conn, error) {
		nc, err := net.Dial("unix", socket)
		if err != nil {
			return nil, err
		}
		return redis.NewConn(nc, 0, 0), nil
	}
	if role == "callee" {
		callee, err := oldjuggler.NewCallee(dial, 100, oldjuggler.TestFunctions())
		if err != nil {
			return err
		}
		defer context.AfterFunc(ctx, callee.Close)()
		fmt.Println("ready")
		return callee.Run()
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("ws://%s/ws\n", listener.Addr())
	if role == "bare" {
		return http.Serve(listener, &bare{})
	}
	return http.Serve(listener, oldjuggler.NewServer(oldjuggler.Options{Dial: dial}))
}

// bare writes, for each PUB that comes in, an event of the same bytes to all who have
// sent a SUB, one write after the other: what nobody can do with less.
type bare struct {
	mu      sync.Mutex
	members []net.Conn
}

// ServeHTTP serves one socket until it ends.
func (b *bare) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	upgrader := websocket.Upgrader{Subprotocols: []string{oldjuggler.Protocol}}
	ws, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // it has answered
	}
	defer ws.Close()
	for {
		_, message, err := ws.ReadMessage()
		if err != nil {
			return
		}
		if bytes.Contains(message, []byte(`"type":3`)) {
			b.mu.Lock()
			b.members = append(b.members, ws.NetConn())
			b.mu.Unlock()
		} else {
			b.publish()
		}
		ack := `{"meta":{"type":8,"uuid":"00000000-0000-4000-8000-000000000000"},"payload":{}}` + "\n"
		if err := ws.WriteMessage(websocket.TextMessage, []byte(ack)); err != nil {
			return
		}
	}
}

func (b *bare) publish() {
	text := fmt.Sprintf(`{"meta":{"type":10,"uuid":"%s"},"payload":{"for":"%s","channel":"c","args":"%s"}}`+"\n",
		oldjuggler.NewUUID(), oldjuggler.NewUUID(), strings.Repeat("x", eventBytes))
	frame := append([]byte{0x81, 126, byte(len(text) >> 8), byte(len(text))}, text...)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, conn := range b.members {
		_, _ = conn.Write(frame) // who is gone is missed by the counter
	}
}
