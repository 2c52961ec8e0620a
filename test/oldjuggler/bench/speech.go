package main

import (
	"bytes"
	"fmt"

	"github.com/gorilla/websocket"

	"github.com/cabrank/cabrank/test/oldjuggler"
)

// speech is how a subprotocol asks for test.echo of "hello".
type speech struct {
	protocol string
	kind     int  // of frames, of WebSocket
	welcome  bool // the server speaks first
	call     func() []byte
	answers  [][]byte // how they begin
	result   []byte   // what the second one has in it
}

// greeter is a method of the workers of cabrank demo.
const greeter = "/cabrank.demo.v1.Greeter/SayHello"

// workerSpeechOf is that of an arm whose calls are methods of workers.
func workerSpeechOf(arm string) speech {
	switch arm {
	case "workers1":
		call := []byte(`{"type":"call","id":1,"uri":"` + greeter + `","timeout":10000,"args":{"name":"hello"}}`)
		return speech{"juggler.1", websocket.TextMessage, true, func() []byte { return call }, [][]byte{
			[]byte(`{"type":"ack",`), []byte(`{"type":"res",`),
		}, []byte(`"message":"`)}
	case "workersproto":
		// as proto1, with a message whose field 1 is hello
		call := []byte("\x08\x01\x10\x01\x22" + string(rune(len(greeter))) + greeter + "\x42\x07\x0a\x05hello\x48\x90\x4e")
		return speech{"juggler.1.proto", websocket.BinaryMessage, true, func() []byte { return call }, [][]byte{
			[]byte("\x08\x08"), []byte("\x08\x09"),
		}, []byte("hello")}
	}
	call := func() []byte {
		return fmt.Appendf(nil, `{"meta":{"type":1,"uuid":"%s"},"payload":{"uri":%q,"timeout":10000000000,"args":{"name":"hello"}}}`, oldjuggler.NewUUID(), greeter)
	}
	return speech{oldjuggler.Protocol, websocket.TextMessage, false, call, [][]byte{
		[]byte(`{"meta":{"type":8,`), []byte(`{"meta":{"type":9,`),
	}, []byte(`"message":"`)}
}

// speechOf is that of an arm.
func speechOf(arm string) speech {
	switch arm {
	case "memory1":
		call := []byte(`{"type":"call","id":1,"uri":"test.echo","timeout":10000,"args":"hello"}`)
		return speech{"juggler.1", websocket.TextMessage, true, func() []byte { return call }, [][]byte{
			[]byte(`{"type":"ack",`), []byte(`{"type":"res",`),
		}, nil}
	case "proto1":
		// call, number 1, test.echo, "hello", 10,000 ms
		call := []byte("\x08\x01\x10\x01\x22\x09test.echo\x3a\x07\"hello\"\x48\x90\x4e")
		return speech{"juggler.1.proto", websocket.BinaryMessage, true, func() []byte { return call }, [][]byte{
			[]byte("\x08\x08"), []byte("\x08\x09"),
		}, nil}
	case "workers", "workers1", "workersproto":
		return workerSpeechOf(arm)
	}
	call := func() []byte {
		return fmt.Appendf(nil, `{"meta":{"type":1,"uuid":"%s"},"payload":{"uri":"test.echo","timeout":10000000000,"args":"hello"}}`, oldjuggler.NewUUID())
	}
	return speech{oldjuggler.Protocol, websocket.TextMessage, false, call, [][]byte{
		[]byte(`{"meta":{"type":8,`), []byte(`{"meta":{"type":9,`),
	}, nil}
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
