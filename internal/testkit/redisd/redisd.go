// Package redisd starts Redis for tests: the program that Debian has, on a Unix
// socket in a folder of its own, with nothing on a port and nothing kept. What needs
// ports, a Cluster or Sentinels, has free ones of the loopback interface.
//
// Start from Start, StartCluster, StartSet or StartTLS. All is stopped and its folder
// removed with the test.
package redisd

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/cabrank/cabrank/internal/testkit"
)

// startWithin bounds how long Redis may take until it answers.
const startWithin = 20 * time.Second

// Server is a Redis that runs.
//
// Life: Launch or Start, any number of Kill and Restart, Stop.
// Concurrency: Dial may be called from anywhere, the others by one goroutine.
type Server struct {
	// Socket is the path on which it listens; a Sentinel has none.
	Socket string
	// Address is HOST:PORT if it has a port, too.
	Address string

	settings []string // beyond the usual
	folder   string
	cmd      *exec.Cmd
}

// Start starts a Redis for a test. Without the program the test fails: `make
// test-real` installs it.
func Start(t testing.TB) *Server {
	t.Helper()
	folder, err := os.MkdirTemp("", "redisd") //nolint:usetesting // it is short: the path of a socket has 100 bytes
	testkit.Must(t, err)
	s := &Server{Socket: filepath.Join(folder, "s"), settings: []string{"--port", "0"}, folder: folder}
	t.Cleanup(s.Stop)
	testkit.Must(t, s.Restart())
	return s
}

// Restart starts it again, empty, on the same socket, after Kill.
func (s *Server) Restart() error {
	s.cmd = exec.Command("redis-server", append([]string{
		"--unixsocket", s.Socket, "--dir", s.folder,
		"--save", "", "--appendonly", "no", "--logfile", filepath.Join(s.folder, "log"),
	}, s.settings...)...)
	return s.start()
}

// start starts the command, and waits until it answers.
func (s *Server) start() error {
	s.cmd.SysProcAttr = endsWithParent()
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("redis-server: %w; scripts/install-deps.sh workers installs it", err)
	}
	for deadline := time.Now().Add(startWithin); ; time.Sleep(2 * time.Millisecond) {
		err := s.ping()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			log, _ := os.ReadFile(filepath.Join(s.folder, "log"))
			return fmt.Errorf("redis-server does not answer: %w\n%s", err, log)
		}
	}
}

func (s *Server) ping() error {
	conn, err := s.Dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Do("PING")
	return err
}

// PID is its process id.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Dial opens a connection to it.
func (s *Server) Dial() (redis.Conn, error) {
	network, address := "unix", s.Socket
	if s.Socket == "" {
		network, address = "tcp", s.Address
	}
	nc, err := net.Dial(network, address)
	if err != nil {
		return nil, err
	}
	return redis.NewConn(nc, 0, 0), nil
}

// Flush empties it.
func (s *Server) Flush(t testing.TB) {
	t.Helper()
	s.do(t, "FLUSHALL")
}

// Kill ends it at once; what it held is gone.
func (s *Server) Kill() {
	if s.cmd == nil || s.cmd.Process == nil {
		return
	}
	if err := s.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return
	}
	_ = s.cmd.Wait() // it was killed, which is what Wait would say
	s.cmd = nil
}

// Stop kills it and removes its folder.
func (s *Server) Stop() {
	s.Kill()
	_ = os.RemoveAll(s.folder) // in the folder of temporary files, where others look after it
}
