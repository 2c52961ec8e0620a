package caller

import (
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

func TestParseWay(t *testing.T) {
	for _, tc := range []struct{ protocol, codec, http, want string }{
		{"", "", "", "gRPC over HTTP/2"},
		{"grpc", "proto", "2", "gRPC over HTTP/2"},
		{"grpc", "json", "", "gRPC with JSON over HTTP/2"},
		{"connect", "", "1.1", "Connect over HTTP/1.1"},
		{"grpc-web", "json", "2", "gRPC-Web with JSON over HTTP/2"},
	} {
		w, err := ParseWay(tc.protocol, tc.codec, tc.http)
		if err != nil || w.String() != tc.want || w.Plain() != (tc.want == "gRPC over HTTP/2") {
			t.Errorf("%+v: %v, %v", tc, w, err)
		}
	}
	for want, words := range map[string][3]string{
		`protocol "soap": want grpc, connect, grpc-web`:                      {"soap", "", ""},
		`codec "xml": want proto, json`:                                      {"", "xml", ""},
		`http "3": want 2, 1.1`:                                              {"connect", "", "3"},
		`http 1.1: gRPC needs HTTP/2; give the protocol connect or grpc-web`: {"", "", "1.1"},
	} {
		_, err := ParseWay(words[0], words[1], words[2])
		testkit.RefusedBy(t, err, want)
	}
}

func TestNewRefuses(t *testing.T) {
	s := &server{addr: "127.0.0.1:1"}
	for want, change := range map[string]func(*Options){
		`target "dns:///a:1": want host:port or unix:///path for calls by Connect`: func(o *Options) { o.Target = "dns:///a:1" },
		`target "a": want host:port or unix:///path for calls by Connect`:          func(o *Options) { o.Target = "a" },
	} {
		o := s.options(t, Way{Protocol: Connect}, "Unary", 1, "hello")
		change(&o)
		_, err := New(o)
		testkit.RefusedBy(t, err, want)
	}
}
