package redisd

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/ports"
)

// launch starts a Redis on a port of the loopback interface, with further settings.
func launch(port int, settings ...string) (*Server, error) {
	folder, err := os.MkdirTemp("", "redisd")
	if err != nil {
		return nil, err
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	s := &Server{Address: address, Socket: filepath.Join(folder, "s"), folder: folder}
	s.settings = append([]string{"--port", strconv.Itoa(port), "--bind", "127.0.0.1"}, settings...)
	if err := s.Restart(); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// launchAll starts so many on free ports; each has n of them.
func launchAll(t testing.TB, count, n int, settings func(i, port int) []string) (all []*Server) {
	t.Helper()
	first, err := ports.Free(count * n)
	testkit.Must(t, err)
	for i := range count {
		port := first + i*n
		s, err := launch(port, settings(i, port)...)
		testkit.Must(t, err)
		t.Cleanup(s.Stop)
		all = append(all, s)
	}
	return all
}

// do runs a command on a Redis; if it fails, the test does.
func (s *Server) do(t testing.TB, name string, args ...any) {
	t.Helper()
	conn, err := s.Dial()
	testkit.Must(t, err)
	defer conn.Close()
	if _, err := conn.Do(name, args...); err != nil {
		t.Fatal(fmt.Errorf("%s %v: %w", name, args, err))
	}
}

// text is what a command returns, "" if it fails.
func (s *Server) text(name string, args ...any) string {
	conn, err := s.Dial()
	if err != nil {
		return ""
	}
	defer conn.Close()
	text, _ := redis.String(conn.Do(name, args...))
	return text
}
