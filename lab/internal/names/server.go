// Package names is a DNS server on a loopback port: Serve answers with addresses that
// change while it runs. Callers ask it as they ask that of a cluster, by
// dns://127.0.0.1:PORT/name:port; it forwards nothing.
package names

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// Most bytes of an answer in one datagram, if the question does not say.
const leastDatagram = 512

// patience is how long a connection over TCP may be silent.
const patience = 10 * time.Second

// Server answers over UDP and TCP.
//
// Life: Serve; ended by Close. Concurrency: any.
type Server struct {
	Addr string // host:port
	zone

	packets net.PacketConn
	stream  net.Listener
	running sync.WaitGroup
	end     context.CancelFunc
}

// Serve starts a server that knows no name yet.
func Serve() (*Server, error) {
	packets, stream, err := listen()
	if err != nil {
		return nil, err
	}
	s := &Server{Addr: stream.Addr().String(), packets: packets, stream: stream}
	ctx, cancel := context.WithCancel(context.Background())
	s.end = cancel
	s.running.Go(s.servePackets)
	s.running.Go(func() { s.serveStream(ctx) })
	return s, nil
}

// Close ends the server, and its connections.
func (s *Server) Close() {
	s.end()
	_ = s.packets.Close()
	s.stream.Close()
	s.running.Wait()
}

// listen finds a port that is free on UDP and TCP.
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

func (s *Server) servePackets() {
	b := make([]byte, 64<<10)
	for {
		n, from, err := s.packets.ReadFrom(b)
		if err != nil {
			return // Close
		}
		if answer := s.answer(b[:n], leastDatagram); answer != nil {
			_, _ = s.packets.WriteTo(answer, from) // whoever asked may have left
		}
	}
}

func (s *Server) serveStream(ctx context.Context) {
	for {
		conn, err := s.stream.Accept()
		if err != nil {
			return
		}
		s.running.Go(func() {
			defer conn.Close()
			defer context.AfterFunc(ctx, func() { conn.Close() })()
			for err := error(nil); err == nil; {
				err = s.serveOne(conn)
			}
		})
	}
}

// serveOne answers one question on a connection: messages go with their length before
// them (RFC 1035, 4.2.2).
func (s *Server) serveOne(conn net.Conn) error {
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	length := make([]byte, 2)
	if _, err := io.ReadFull(conn, length); err != nil {
		return err
	}
	question := make([]byte, binary.BigEndian.Uint16(length))
	if _, err := io.ReadFull(conn, question); err != nil {
		return err
	}
	answer := s.answer(question, 0)
	if answer == nil {
		return errors.New("no question")
	}
	_, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...))
	return err
}
