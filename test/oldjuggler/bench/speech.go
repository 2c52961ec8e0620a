package main

import (
	"bytes"
	"context"
	"fmt"

	"github.com/gorilla/websocket"

	"github.com/cabrank/cabrank/test/oldjuggler"
)

// speech is how a subprotocol says what is measured.
type speech struct {
	protocol  string
	kind      int           // of frames, of WebSocket
	welcome   bool          // the server speaks first
	call      func() []byte // test.echo of "hello"
	answers   [][]byte      // how they begin
	result    []byte        // what the second one has in it
	subscribe []byte        // to channel c
	publish   func(text string) []byte
	mark      []byte // stands before the text of an event
}

// speechOf is that of an arm.
func speechOf(arm string) speech {
	switch arm {
	case "memory1":
		return text1()
	case "proto1":
		return proto1()
	case "workers", "workers1", "workersproto":
		return workerSpeechOf(arm)
	}
	return text0()
}

// text0 is juggler.0.
func text0() speech {
	return speech{
		protocol: oldjuggler.Protocol, kind: websocket.TextMessage,
		call: func() []byte {
			return fmt.Appendf(nil, `{"meta":{"type":1,"uuid":"%s"},"payload":{"uri":"test.echo","timeout":10000000000,"args":"hello"}}`, oldjuggler.NewUUID())
		},
		answers:   [][]byte{[]byte(`{"meta":{"type":8,`), []byte(`{"meta":{"type":9,`)},
		subscribe: []byte(`{"meta":{"type":3},"payload":{"channel":"c"}}`),
		publish: func(text string) []byte {
			return fmt.Appendf(nil, `{"meta":{"type":2,"uuid":%q},"payload":{"channel":"c","args":%q}}`, oldjuggler.NewUUID(), text)
		},
		mark: []byte(`"args":"`),
	}
}

// text1 is juggler.1.
func text1() speech {
	call := []byte(`{"type":"call","id":1,"uri":"test.echo","timeout":10000,"args":"hello"}`)
	return speech{
		protocol: "juggler.1", kind: websocket.TextMessage, welcome: true,
		call:      func() []byte { return call },
		answers:   [][]byte{[]byte(`{"type":"ack",`), []byte(`{"type":"res",`)},
		subscribe: []byte(`{"type":"sub","id":1,"channel":"c"}`),
		publish: func(text string) []byte {
			return fmt.Appendf(nil, `{"type":"pub","id":2,"channel":"c","args":%q}`, text)
		},
		mark: []byte(`"args":"`),
	}
}

// proto1 is juggler.1.proto.
func proto1() speech {
	// call, number 1, test.echo, "hello", 10,000 ms
	call := []byte("\x08\x01\x10\x01\x22\x09test.echo\x3a\x07\"hello\"\x48\x90\x4e")
	// the text of an event has 102 bytes with its quotes
	json := fmt.Sprintf("\x3a%c\"", eventBytes+2)
	return speech{
		protocol: "juggler.1.proto", kind: websocket.BinaryMessage, welcome: true,
		call:      func() []byte { return call },
		answers:   [][]byte{[]byte("\x08\x08"), []byte("\x08\x09")},
		subscribe: []byte("\x08\x03\x10\x01\x2a\x01c"),
		publish:   func(text string) []byte { return []byte("\x08\x02\x10\x02\x2a\x01c" + json + text + "\"") },
		mark:      []byte(json),
	}
}

// greeter is a method of the workers of cabrank demo.
const greeter = "/cabrank.demo.v1.Greeter/SayHello"

// workerSpeechOf is that of an arm whose calls are methods of workers.
func workerSpeechOf(arm string) speech {
	switch arm {
	case "workers1":
		call := []byte(`{"type":"call","id":1,"uri":"` + greeter + `","timeout":10000,"args":{"name":"hello"}}`)
		s := text1()
		s.call, s.result = func() []byte { return call }, []byte(`"message":"`)
		return s
	case "workersproto":
		// as proto1, with a message whose field 1 is hello
		call := []byte("\x08\x01\x10\x01\x22" + string(rune(len(greeter))) + greeter + "\x42\x07\x0a\x05hello\x48\x90\x4e")
		s := proto1()
		s.call, s.result = func() []byte { return call }, []byte("hello")
		return s
	}
	s := text0()
	s.result = []byte(`"message":"`)
	s.call = func() []byte {
		return fmt.Appendf(nil, `{"meta":{"type":1,"uuid":"%s"},"payload":{"uri":%q,"timeout":10000000000,"args":{"name":"hello"}}}`, oldjuggler.NewUUID(), greeter)
	}
	return s
}

// dial opens a socket.
func (s speech) dial(ctx context.Context, url string, buffers int) (*websocket.Conn, error) {
	dialer := websocket.Dialer{Subprotocols: []string{s.protocol}, ReadBufferSize: buffers, WriteBufferSize: buffers}
	ws, response, err := dialer.DialContext(ctx, url, nil)
	if err != nil {
		return nil, err
	}
	response.Body.Close()
	if s.welcome {
		if _, _, err := ws.ReadMessage(); err != nil {
			ws.Close()
			return nil, err
		}
	}
	return ws, nil
}

// once waits for the result, and for the acknowledgment, which may come later.
func (s speech) once(ws *websocket.Conn) error {
	if err := ws.WriteMessage(s.kind, s.call()); err != nil {
		return err
	}
	for range s.answers {
		_, got, err := ws.ReadMessage()
		if err != nil {
			return err
		}
		if !bytes.HasPrefix(got, s.answers[0]) && (!bytes.HasPrefix(got, s.answers[1]) || !bytes.Contains(got, s.result)) {
			return fmt.Errorf("an answer that is none: %q", got)
		}
	}
	return nil
}
