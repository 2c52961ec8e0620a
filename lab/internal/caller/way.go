package caller

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// The words of a Way, the first being that of the zero value.
const (
	GRPC    = "grpc"
	Connect = "connect"
	GRPCWeb = "grpc-web"

	protoWord = "proto"
	jsonWord  = "json"

	two = "2"
	one = "1.1"
)

// Protocols are the words for a protocol.
func Protocols() []string { return []string{GRPC, Connect, GRPCWeb} }

// Codecs are the words for how messages are written.
func Codecs() []string { return []string{protoWord, jsonWord} }

// Versions are those of HTTP. Version 2 is spoken at once (prior knowledge), or
// agreed upon by TLS.
func Versions() []string { return []string{two, one} }

// Way is how calls are written. The zero value is gRPC with protobuf over HTTP/2.
//
// Shape: made by ParseWay; an empty word is the first of those that there are.
type Way struct {
	Protocol string `json:"protocol,omitempty" key:"protocol" oneof:"grpc|connect|grpc-web"`
	Codec    string `json:"codec,omitempty" key:"codec" oneof:"proto|json"`
	HTTP     string `json:"http,omitempty" key:"http" oneof:"2|1.1"`
}

// ParseWay reads three words; an empty one is the default.
//
// Errors: one line that begins with what is wrong: protocol, codec or http.
func ParseWay(protocol, codec, version string) (w Way, err error) {
	for _, part := range []struct {
		name, text string
		words      []string
		into       *string
	}{
		{"protocol", protocol, Protocols(), &w.Protocol},
		{"codec", codec, Codecs(), &w.Codec},
		{"http", version, Versions(), &w.HTTP},
	} {
		switch at := slices.Index(part.words, part.text); {
		case at > 0:
			*part.into = part.text
		case at < 0 && part.text != "":
			return w, fmt.Errorf("%s %.40q: want %s", part.name, part.text, strings.Join(part.words, ", "))
		}
	}
	if w.Protocol == "" && w.HTTP != "" {
		return w, errors.New("http 1.1: gRPC needs HTTP/2; give the protocol connect or grpc-web")
	}
	return w, nil
}

// Plain reports whether it is what package caller speaks.
func (w Way) Plain() bool { return w == Way{} }

// JSON reports whether messages are JSON.
func (w Way) JSON() bool { return w.Codec == jsonWord }

// Check holds the way against how calls share connections.
//
// Errors: one line.
func (w Way) Check(s Strategy) error {
	if s == RoundRobin && !w.Plain() {
		return fmt.Errorf("connections round-robin: grpc-go alone has it, and calls are %s; give single, a number or per-call", w)
	}
	return nil
}

func (w Way) protocol() string { return orFirst(w.Protocol, Protocols()) }

func (w Way) codec() string { return orFirst(w.Codec, Codecs()) }

func orFirst(word string, words []string) string {
	if word == "" {
		return words[0]
	}
	return word
}

// name is the protocol as people write it.
func (w Way) name() string {
	return map[string]string{GRPC: "gRPC", Connect: "Connect", GRPCWeb: "gRPC-Web"}[w.protocol()]
}

// spoken is the way without the version of HTTP.
func (w Way) spoken() string {
	if w.JSON() {
		return w.name() + " with JSON"
	}
	return w.name()
}

// String is the way in words.
func (w Way) String() string { return w.spoken() + " over HTTP/" + orFirst(w.HTTP, Versions()) }
