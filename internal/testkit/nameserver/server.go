// Package nameserver is a DNS server on a loopback port, for tests and for the lab: Start
// answers as a function says, StartZone and ServeZone from records. It is built on another
// library than what the program asks with, and stands apart from testkit, so that few
// tests build that. It forwards nothing.
package nameserver

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"

	"github.com/miekg/dns"
)

// TB is what is used of a testing.TB.
type TB interface {
	// Helper marks the function that calls it.
	Helper()
	// Fatal ends the test.
	Fatal(args ...any)
	// Cleanup has a function called at the end of the test.
	Cleanup(f func())
}

// Server answers over UDP and TCP.
//
// Life: Start, ended by the end of the test; a Zone of ServeZone is ended by Close.
// Concurrency: any.
type Server struct {
	Addr string // host:port

	handle  func(answer *dns.Msg, network string)
	servers []*dns.Server
	running sync.WaitGroup

	mu    sync.Mutex
	asked []string // "udp A name.", the last ones
}

// mostAsked bounds the questions that are kept.
const mostAsked = 10_000

// Start serves answers. Each begins as an empty one to its question, which handle
// completes; without Response it is not sent. network is "udp" or "tcp".
func Start(t TB, handle func(answer *dns.Msg, network string)) *Server {
	t.Helper()
	s, err := serve(handle)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func serve(handle func(answer *dns.Msg, network string)) (*Server, error) {
	packets, stream, err := listen()
	if err != nil {
		return nil, err
	}
	s := &Server{Addr: stream.Addr().String(), handle: handle}
	handler := dns.HandlerFunc(s.answer)
	s.servers = []*dns.Server{{PacketConn: packets, Handler: handler}, {Listener: stream, Handler: handler}}
	for _, server := range s.servers {
		started := make(chan struct{})
		server.NotifyStartedFunc = func() { close(started) }
		s.running.Go(func() { _ = server.ActivateAndServe() })
		<-started
	}
	return s, nil
}

func (s *Server) answer(w dns.ResponseWriter, m *dns.Msg) {
	network := w.LocalAddr().Network()
	answer := new(dns.Msg).SetReply(m)
	answer.RecursionAvailable = true
	s.mu.Lock()
	if len(s.asked) == mostAsked {
		s.asked = s.asked[:0]
	}
	s.asked = append(s.asked, network+" "+dns.TypeToString[m.Question[0].Qtype]+" "+m.Question[0].Name)
	s.mu.Unlock()
	if s.handle(answer, network); !answer.Response {
		return
	}
	if network == "udp" {
		answer.Truncate(mostBytes(m))
	}
	_ = w.WriteMsg(answer) // whoever asked may have left
}

// mostBytes is what a question lets an answer over UDP have.
func mostBytes(question *dns.Msg) int {
	if edns := question.IsEdns0(); edns != nil {
		return int(edns.UDPSize())
	}
	return dns.MinMsgSize
}

// Close ends the server.
func (s *Server) Close() {
	for _, server := range s.servers {
		_ = server.Shutdown()
	}
	s.running.Wait()
}

// Questions returns what was asked so far, as "udp A name.", in order.
func (s *Server) Questions() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// Listen finds a port that is free on UDP and TCP.
func Listen(t TB) (net.PacketConn, net.Listener) {
	t.Helper()
	packets, stream, err := listen()
	if err != nil {
		t.Fatal(err)
	}
	return packets, stream
}

func listen() (net.PacketConn, net.Listener, error) {
	for range 100 {
		stream, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, nil, err
		}
		if packets, err := new(net.ListenConfig).ListenPacket(context.Background(), "udp", stream.Addr().String()); err == nil {
			return packets, stream, nil
		}
		stream.Close()
	}
	return nil, nil, errors.New("no port is free on UDP and TCP")
}

// Add adds records in the form of a zone file to an answer.
func Add(answer *dns.Msg, lines ...string) { answer.Answer = append(answer.Answer, read(lines)...) }

// read reads the form of a zone file, and panics on another one.
func read(lines []string) (records []dns.RR) {
	for _, line := range lines {
		record, err := dns.NewRR(line)
		if err != nil {
			panic(err)
		}
		records = append(records, record)
	}
	return records
}
