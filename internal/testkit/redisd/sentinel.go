package redisd

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/ports"
)

// Set is a primary and a replica, and Sentinels that watch them as "mymaster".
type Set struct {
	Primary, Replica *Server
	Sentinels        []*Server
}

// StartSet starts one for a test, with so many Sentinels.
func StartSet(t testing.TB, sentinels int) *Set {
	t.Helper()
	servers := launchAll(t, 2, 1, func(int, int) []string { return []string{"--repl-diskless-sync-delay", "0"} })
	s := &Set{Primary: servers[0], Replica: servers[1]}
	host, port, _ := strings.Cut(s.Primary.Address, ":")
	s.Replica.do(t, "REPLICAOF", host, port)
	testkit.Eventually(t, startWithin, "the replica to follow", func() bool {
		return strings.Contains(s.Replica.text("INFO", "replication"), "master_link_status:up")
	})
	first, err := ports.Free(sentinels)
	testkit.Must(t, err)
	for i := range sentinels {
		sentinel, err := launchSentinel(first+i, s.Primary.Address, (sentinels+1)/2)
		testkit.Must(t, err)
		t.Cleanup(sentinel.Stop)
		s.Sentinels = append(s.Sentinels, sentinel)
	}
	for _, sentinel := range s.Sentinels {
		testkit.Eventually(t, startWithin, "Sentinels to know all", func() bool {
			return strings.Contains(sentinel.text("INFO", "sentinel"), fmt.Sprintf("status=ok,address=%s,slaves=1,sentinels=%d", s.Primary.Address, sentinels))
		})
	}
	return s
}

// launchSentinel starts one: a Redis that needs a file, which it writes to.
func launchSentinel(port int, primary string, quorum int) (*Server, error) {
	folder, err := os.MkdirTemp("", "redisd")
	if err != nil {
		return nil, err
	}
	s := &Server{Address: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), folder: folder}
	host, primaryPort, _ := strings.Cut(primary, ":")
	file, ms := filepath.Join(folder, "conf"), nodeTimeout.Milliseconds()
	text := fmt.Sprintf("port %d\nbind 127.0.0.1\ndir %s\nlogfile %s\nsentinel monitor mymaster %s %s %d\n"+
		"sentinel down-after-milliseconds mymaster %d\nsentinel failover-timeout mymaster %d\n",
		port, folder, filepath.Join(folder, "log"), host, primaryPort, quorum, ms, 4*ms)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	s.cmd = exec.Command("redis-server", file, "--sentinel")
	if err := s.start(); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// URL is the address of the set.
func (s *Set) URL() string {
	var url strings.Builder
	url.WriteString("redis://" + s.Sentinels[0].Address + "?master_set=mymaster")
	for _, more := range s.Sentinels[1:] {
		url.WriteString("&addr=" + more.Address)
	}
	return url.String()
}

// Kill ends all of it.
func (s *Set) Kill() {
	for _, server := range append([]*Server{s.Primary, s.Replica}, s.Sentinels...) {
		server.Kill()
	}
}

// Dial opens a connection to the primary, whichever it is.
func (s *Set) Dial() (redis.Conn, error) {
	for _, server := range []*Server{s.Primary, s.Replica} {
		conn, err := server.Dial()
		if err != nil {
			continue
		}
		role, err := redis.Values(conn.Do("ROLE"))
		if err == nil && len(role) > 0 && string(role[0].([]byte)) == "master" {
			return conn, nil
		}
		conn.Close()
	}
	return nil, errors.New("no primary")
}
