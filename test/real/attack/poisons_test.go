//go:build real || soak

package attack_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// instead is the usual list with another value of one field; without is the list
// without it.
func instead(name, value string) []string {
	list := with()
	list[slices.Index(list, name)+1] = value
	return list
}

func without(name string, fields ...string) []string {
	list := with(fields...)
	at := slices.Index(list, name)
	return slices.Delete(list, at, at+2)
}

// then sends frames and the end of the request behind them.
func then(frames func(caller *testkit.Peer, stream uint32)) func(*testkit.Peer, uint32) {
	return func(caller *testkit.Peer, stream uint32) {
		frames(caller, stream)
		caller.WriteData(stream, testkit.End, nil)
	}
}

func body(bytes []byte) func(*testkit.Peer, uint32) {
	return func(caller *testkit.Peer, stream uint32) { caller.WriteData(stream, testkit.End, bytes) }
}

// R12: the same of all else that a caller can say and that a worker might take amiss.
func TestNothingThatCallersSayEndsAWorkersConnection(t *testing.T) {
	for _, lang := range harness.Langs() {
		t.Run(lang+" worker", func(t *testing.T) { poisonWorker(t, lang, slices.Concat(lists(), targets(), bodies())) })
	}
}

// lists are header lists, but for what says where a call goes.
func lists() []poison {
	return []poison{
		{name: "many cookies", list: with(strings.Split(strings.Repeat("cookie,a=b,", 99)+"cookie,c", ",")...)},
		{name: "trace that is too short", list: with("grpc-trace-bin", "YQ", "grpc-tags-bin", "", "lb-cost-bin", "YQ", "endpoint-load-metrics-bin", "/w")},
		{name: "names of no gRPC", list: with("x!y", "1", "#$%&'*+^`|~", "1", "-", "1", ".", "1", "_", "1")},
		{name: "control characters", list: with("x-control", "a\x01\x1f\x7fb")},
		{name: "high octets", list: with("x-latin", "\xe4\xff", "x-utf8", "\u00e4\U0001f695", "user-agent", "\xfe")},
		{name: "empty values", list: with("x-empty", "", "user-agent", "", "grpc-encoding", "", "grpc-accept-encoding", "")},
		{name: "tab and space", list: with("x-tab", "a\t b")},
		{name: "fields of an answer", list: with("grpc-status", "x", "grpc-message", "%zz", "grpc-status-details-bin", "/w",
			"grpc-retry-pushback-ms", "x", "trailer", "x", "content-encoding", "gzip", "server", "x", "date", "x")},
		{name: "attempts that are no number", list: with("grpc-previous-rpc-attempts", "x")},
		{name: "unknown encodings", list: with("grpc-encoding", "x", "grpc-accept-encoding", strings.Repeat("x,", 1000))},
		{name: "internal names of gRPC", list: with("grpc-internal-encoding-request", "gzip", "lb-token", "x", "grpclb_client_stats", "x",
			"grpc-x", "1", "x-envoy-peer-metadata", "x", "host-override", "x")},
		{name: "expect", list: with("expect", "100-continue")},
		{name: "priority", list: with("priority", "u=99, i=?2")},
		{name: "timeout of centuries", list: with("grpc-timeout", "99999999H")},
		{name: "timeout of nothing", list: with("grpc-timeout", "0n")},
		{name: "bad timeout", list: with("grpc-timeout", "-1S")},
		{name: "two timeouts", list: with("grpc-timeout", "1S", "grpc-timeout", "2S")},
		{name: "content type of another codec", list: instead("content-type", "application/grpc+\u00e4; x=\"")},
		{name: "two content types", list: with("content-type", "application/grpc")},
		{name: "no content type", list: without("content-type")},
		{name: "not gRPC", list: instead("content-type", "text/plain")},
		{name: "no te", list: without("te")},
		{name: "two te", list: with("te", "trailers")},
		{name: "te of HTTP/1", list: instead("te", "gzip")},
		{name: "connection", list: with("connection", "close")},
		{name: "upgrade", list: with("upgrade", "h2c", "http2-settings", "x")},
		{name: "transfer-encoding", list: with("transfer-encoding", "chunked")},
		{name: "upper case", list: with("X-Upper", "1")},
		{name: "status in a request", list: append([]string{":status", "200"}, with()...)},
		{name: "protocol", list: append([]string{":protocol", "websocket"}, with()...)},
		{name: "method twice", list: append([]string{":method", "POST"}, with()...)},
		{name: "path twice", list: append([]string{":path", "/a/b"}, with()...)},
		{name: "pseudo field behind others", list: with(":authority", "late")},
	}
}

// targets say where a call goes.
func targets() []poison {
	all := []poison{
		{name: "host of another", list: with("host", "other.test")},
		{name: "two hosts", list: with("host", "work.test", "host", "other.test")},
		{name: "host alone", list: without(":authority", "host", "work.test")},
		{name: "neither authority nor host", list: without(":authority")},
		{name: "no scheme", list: without(":scheme")},
		{name: "no path", list: without(":path")},
		{name: "no method", list: without(":method")},
	}
	for name, values := range map[string][]string{
		":authority": {"", "a@b", "[::1", "work.test:99999", "a%00b", "\u00e4", strings.Repeat("a", 5000), "a,b"},
		":path": {"/", "/a", "//", "/a/b/c", "/?", "/a/b?c=d", "/a/b#c", "/\u00e4/\xff", "/%zz/%", "/../..", "/a b/c", "a/b", "*", "",
			"/" + strings.Repeat("a", 5000) + "/b", "http://work.test/a/b"},
		":scheme": {"https", "ftp", "", "h\u00e4"},
		":method": {"GET", "HEAD", "PUT", "OPTIONS", "CONNECT", "PRI", "", "post", "P\u00e4"},
	} {
		for _, value := range values {
			all = append(all, poison{name: name + " " + value[:min(len(value), 20)], list: instead(name, value)})
		}
	}
	return all
}

// bodies are what follows a header list, in content or in frames.
func bodies() []poison {
	message := make([]byte, 5)
	return []poison{
		{name: "trailers alone", send: func(c *testkit.Peer, s uint32) { c.WriteHeaders(s, testkit.End, "x-checksum", "1") }},
		{name: "empty trailers", send: trailers()},
		{name: "large trailers", send: trailers("x-large", strings.Repeat("v", 20_000))},
		{name: "trailers of an answer", send: trailers("grpc-status", "0")},
		{name: "trailers with a path", send: trailers(":path", "/a/b")},
		{name: "trailers that end nothing", send: func(c *testkit.Peer, s uint32) {
			c.WriteHeaders(s, testkit.NoEnd, "x", "1")
		}},
		{name: "no message", send: body(nil)},
		{name: "half a prefix", send: body(message[:3])},
		{name: "half a message", send: body([]byte{0, 0, 0, 0, 9, 1})},
		{name: "message of 4 GiB", send: body([]byte{0, 0xff, 0xff, 0xff, 0xff, 1})},
		{name: "unknown flag", send: body([]byte{0xff, 0, 0, 0, 0})},
		{name: "compressed without an encoding", send: body([]byte{1, 0, 0, 0, 1, 0xff})},
		{name: "compressed badly", list: with("grpc-encoding", "gzip"), send: body([]byte{1, 0, 0, 0, 1, 0xff})},
		{name: "no protobuf", send: body([]byte{0, 0, 0, 0, 2, 0xff, 0xff})},
		{name: "many messages", send: body(make([]byte, 5*300))},
		{name: "every octet a frame", send: then(func(c *testkit.Peer, s uint32) {
			for i := range message {
				c.WriteData(s, testkit.NoEnd, message[i:i+1])
			}
		})},
		{name: "empty frames", send: then(func(c *testkit.Peer, s uint32) {
			for range 12 {
				c.WriteData(s, testkit.NoEnd, nil)
			}
		})},
		{name: "padding", send: then(func(c *testkit.Peer, s uint32) {
			for range 3 {
				c.WritePadded(s, testkit.NoEnd, nil, 255)
			}
			c.WritePadded(s, testkit.NoEnd, message, 0)
		})},
		{name: "length", list: with("content-length", "5")},
		{name: "length that is too great", list: with("content-length", "6")},
		{name: "length that is too small", list: with("content-length", "4")},
		{name: "length of nothing", list: with("content-length", "0"), send: body(nil)},
		{name: "length that is none", list: with("content-length", "-5")},
		{name: "two lengths", list: with("content-length", "5", "content-length", "6")},
		{name: "DATA behind the end", send: func(c *testkit.Peer, s uint32) {
			c.WriteData(s, testkit.End, message)
			c.WriteData(s, testkit.NoEnd, message)
		}},
		{name: "HEADERS behind the end", send: func(c *testkit.Peer, s uint32) {
			c.WriteData(s, testkit.End, message)
			c.WriteHeaders(s, testkit.End, "x", "1")
		}},
		{name: "window update of nothing", send: then(func(c *testkit.Peer, s uint32) { c.WriteWindowUpdate(s, 0) })},
		{name: "window update beyond the limit", send: then(func(c *testkit.Peer, s uint32) { c.WriteWindowUpdate(s, 1<<31-1) })},
		{name: "priority frames", send: then(func(c *testkit.Peer, s uint32) {
			c.WriteFrame(http2.FramePriority, 0, s, []byte{0, 0, 0, 0, 255})
			c.WriteFrame(http2.FramePriority, 0, s+2, []byte{0x80, 0, 0, byte(s), 0})
		})},
		{name: "priority on itself", send: then(func(c *testkit.Peer, s uint32) {
			c.WriteFrame(http2.FramePriority, 0, s, []byte{0, 0, 0, byte(s), 0})
		})},
		{name: "unknown frames", send: then(func(c *testkit.Peer, s uint32) {
			c.WriteFrame(0x42, 0xff, s, bytes.Repeat([]byte{1}, 99))
		})},
	}
}
