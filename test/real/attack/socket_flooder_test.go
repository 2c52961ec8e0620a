//go:build real || soak

package attack_test

import (
	"encoding/binary"
	"net"
	"strings"

	"github.com/gorilla/websocket"
)

// socketFloods are what sockets send.
func socketFloods() []flood {
	const text, fin, again = 1, 0x80, 4 << 10
	long, numbers := strings.Repeat("x", 1_000_000), strings.Repeat("1,", 500_000)+"1"
	many := func(frame []byte) []byte { return []byte(strings.Repeat(string(frame), again)) }
	return []flood{
		{name: "empty frames", frames: [][]byte{maskedFrame(text, ""), many(maskedFrame(0, ""))}},
		{name: "pings", frames: [][]byte{nil, many(maskedFrame(fin|text, `{"type":"ping"}`))}},
		{name: "pongs", frames: [][]byte{nil, many(maskedFrame(fin|10, ""))}},
		{name: "long publishes", frames: [][]byte{nil, maskedFrame(fin|text, `{"type":"pub","channel":"c","args":"`+long+`"}`)}},
		{name: "long lists", frames: [][]byte{nil, maskedFrame(fin|text, `{"type":"pub","channel":"c","args":[`+numbers+`]}`)}},
		{name: "long calls", frames: [][]byte{nil, maskedFrame(fin|text, `{"type":"call","id":1,"uri":"nobody","args":"`+long+`"}`)}},
	}
}

// maskedFrame is a frame of a client, whose mask changes nothing. Source: RFC 6455, section 5.2.
func maskedFrame(first byte, payload string) []byte {
	const masked, two, eight = 0x80, 126, 127
	b := []byte{first}
	switch n := len(payload); {
	case n < two:
		b = append(b, masked|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, masked|two), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, masked|eight), uint64(n))
	}
	return append(append(b, 0, 0, 0, 0), payload...)
}

// dialSocketFlood opens a socket of juggler.1, of whose connection frames are written as they are.
func dialSocketFlood(addr string) (net.Conn, error) {
	dialer := websocket.Dialer{Subprotocols: []string{"juggler.1"}}
	ws, response, err := dialer.Dial("ws://"+addr+"/ws", nil)
	if err != nil {
		return nil, err
	}
	response.Body.Close()
	return ws.NetConn(), nil
}
