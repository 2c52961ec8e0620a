// Package nameserver is a DNS server on a loopback port for tests: Start answers as a
// function says, StartZone from records. It stands apart from testkit, so that few
// tests build a DNS library.
package nameserver

import (
	"net"
	"slices"
	"sync"
	"testing"

	"github.com/miekg/dns"

	"github.com/cabrank/cabrank/internal/lab/names"
)

// Server answers over UDP and TCP.
//
// Life: Start; ended by the end of the test. Concurrency: any.
type Server struct {
	Addr string

	mu    sync.Mutex
	asked []string // "udp A name."
}

// Start serves answers. Each begins as an empty one to its question, which handle
// completes; without Response it is not sent. network is "udp" or "tcp".
func Start(t testing.TB, handle func(answer *dns.Msg, network string)) *Server {
	t.Helper()
	s := &Server{}
	server, err := names.Serve(func(answer *dns.Msg, network string) {
		question := answer.Question[0]
		s.mu.Lock()
		s.asked = append(s.asked, network+" "+dns.TypeToString[question.Qtype]+" "+question.Name)
		s.mu.Unlock()
		handle(answer, network)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	s.Addr = server.Addr
	return s
}

// Questions returns what was asked so far, as "udp A name.", in order.
func (s *Server) Questions() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// Listen finds a port that is free on UDP and TCP.
func Listen(t testing.TB) (net.PacketConn, net.Listener) {
	t.Helper()
	packets, stream, err := names.Listen()
	if err != nil {
		t.Fatal(err)
	}
	return packets, stream
}

// Add adds records in the form of a zone file to an answer.
func Add(answer *dns.Msg, lines ...string) { answer.Answer = append(answer.Answer, read(lines)...) }

// read reads the form of a zone file, and panics on another one.
func read(lines []string) []dns.RR {
	records, err := names.Read(lines)
	if err != nil {
		panic(err)
	}
	return records
}
