// Package fakeredis is a Redis that says what a test wants: for what a real one says only
// by chance, or when it changes its place.
//
// Start from Start.
package fakeredis

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Conn is a connection to it.
type Conn struct {
	net.Conn

	// Number counts connections from 1.
	Number int
}

// Server is one.
type Server struct {
	// Address is HOST:PORT.
	Address string

	answer  func(c *Conn, args []string) string
	serving sync.WaitGroup

	mu    sync.Mutex
	conns []*Conn
}

// Start starts one for a test. answer returns the answer to a command, as it is on the
// wire, in an order that is that of each connection; "" is none. Default is what an empty
// Redis says.
func Start(t testing.TB, answer func(c *Conn, args []string) string) *Server {
	t.Helper()
	on, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Address: on.Addr().String(), answer: answer}
	s.serving.Go(func() {
		for {
			nc, err := on.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			c := &Conn{Conn: nc, Number: len(s.conns) + 1}
			s.conns = append(s.conns, c)
			s.mu.Unlock()
			s.serving.Go(func() { s.serve(c) })
		}
	})
	t.Cleanup(func() {
		on.Close()
		s.Cut()
		s.serving.Wait()
	})
	return s
}

// Cut ends all connections; whoever looks behind it sees the end.
func (s *Server) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		if tcp, ok := c.Conn.(*net.TCPConn); ok {
			_ = tcp.CloseWrite() // at once: Close waits for who reads
		}
		c.Close()
	}
}

func (s *Server) serve(c *Conn) {
	defer c.Close()
	for in := bufio.NewReader(c); ; {
		args, err := read(in)
		if err != nil {
			return
		}
		if _, err := io.WriteString(c, s.answer(c, args)); err != nil {
			return
		}
	}
}

// read reads a command: an array of texts.
func read(in *bufio.Reader) (args []string, err error) {
	n, err := number(in, '*')
	for ; err == nil && n > 0; n-- {
		var length int
		if length, err = number(in, '$'); err != nil {
			break
		}
		text := make([]byte, length+2)
		_, err = io.ReadFull(in, text)
		args = append(args, string(text[:length]))
	}
	return args, err
}

func number(in *bufio.Reader, kind byte) (int, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return 0, err
	}
	if line[0] != kind {
		return 0, fmt.Errorf("fakeredis: %q begins no command", line)
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}

// Default answers what a primary says that has nothing. A pop waits for ever.
func Default(args []string) string {
	switch strings.ToUpper(args[0]) {
	case "HELLO":
		return "%3\r\n+server\r\n+redis\r\n+proto\r\n:3\r\n+version\r\n+7.0.0\r\n"
	case "CLUSTER":
		return "-ERR This instance has cluster support disabled\r\n"
	case "ROLE":
		return "*3\r\n+master\r\n:0\r\n*0\r\n"
	case "TIME":
		return "-NOPERM no clock here\r\n"
	case "SUBSCRIBE", "PSUBSCRIBE":
		var all strings.Builder
		for i, name := range args[1:] {
			fmt.Fprintf(&all, ">3\r\n+%s\r\n$%d\r\n%s\r\n:%d\r\n", strings.ToLower(args[0]), len(name), name, i+1)
		}
		return all.String()
	case "PUBLISH", "LPUSH", "DEL", "LREM":
		return ":1\r\n"
	case "BLMPOP", "BLMOVE":
		return ""
	case "SCAN":
		return "*2\r\n+0\r\n*0\r\n"
	case "PING":
		return "+PONG\r\n"
	case "LRANGE", "SMEMBERS":
		return "*0\r\n"
	case "LMOVE":
		return "_\r\n"
	case "SADD", "PEXPIRE":
		return ":0\r\n"
	case "PTTL":
		return ":5000\r\n"
	}
	return "+OK\r\n"
}
