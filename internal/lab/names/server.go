// Package names is a DNS server on a loopback port: Serve answers as a function says,
// ServeZone from records that change while it runs. Callers ask it as they ask that of
// a cluster, by dns://127.0.0.1:PORT/name:port; it forwards nothing.
package names

import (
	"context"
	"errors"
	"net"
	"sync"

	"github.com/miekg/dns"
)

// Server answers over UDP and TCP.
//
// Life: Serve; ended by Close. Concurrency: any.
type Server struct {
	Addr string // host:port

	servers []*dns.Server
	running sync.WaitGroup
}

// Serve starts a server. Each answer begins as an empty one to its question, which
// handle completes; without Response it is not sent. network is "udp" or "tcp".
func Serve(handle func(answer *dns.Msg, network string)) (*Server, error) {
	packets, stream, err := Listen()
	if err != nil {
		return nil, err
	}
	s := &Server{Addr: stream.Addr().String()}
	handler := dns.HandlerFunc(func(w dns.ResponseWriter, m *dns.Msg) {
		network := w.LocalAddr().Network()
		answer := new(dns.Msg).SetReply(m)
		answer.RecursionAvailable = true
		if handle(answer, network); !answer.Response {
			return
		}
		if network == "udp" {
			answer.Truncate(mostBytes(m))
		}
		_ = w.WriteMsg(answer) // whoever asked may have left
	})
	s.servers = []*dns.Server{{PacketConn: packets, Handler: handler}, {Listener: stream, Handler: handler}}
	for _, server := range s.servers {
		started := make(chan struct{})
		server.NotifyStartedFunc = func() { close(started) }
		s.running.Go(func() { _ = server.ActivateAndServe() })
		<-started
	}
	return s, nil
}

// Close ends the server.
func (s *Server) Close() {
	for _, server := range s.servers {
		_ = server.Shutdown()
	}
	s.running.Wait()
}

// mostBytes is what a question lets an answer over UDP have.
func mostBytes(question *dns.Msg) int {
	if edns := question.IsEdns0(); edns != nil {
		return int(edns.UDPSize())
	}
	return dns.MinMsgSize
}

// Listen finds a port that is free on UDP and TCP.
func Listen() (net.PacketConn, net.Listener, error) {
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
