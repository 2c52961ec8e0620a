package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/cabrank/cabrank/internal/testkit/redisd"
)

// arm is the processes of one way to do it.
type arm struct {
	name   string
	url    string
	server *exec.Cmd
	callee *exec.Cmd      // nil: functions are in the server
	store  *redisd.Server // nil: there is none
	cancel context.CancelFunc
}

// start starts an arm: old, redis, memory or bare.
func (p plan) start(ctx context.Context, name string) (a *arm, err error) {
	ctx, cancel := context.WithCancel(ctx)
	a = &arm{name: name, cancel: cancel}
	defer func() {
		if err != nil {
			a.stop()
		}
	}()
	if name == "old" || name == "redis" {
		if a.store, err = redisd.Launch(); err != nil {
			return a, err
		}
		if a.callee, _, err = child(ctx, "callee", a.store); err != nil {
			return a, err
		}
	}
	switch name {
	case "old":
		a.server, a.url, err = child(ctx, "server", a.store)
	case "bare":
		a.server, a.url, err = child(ctx, "bare", nil)
	case "redis":
		err = a.serve(ctx, p.cabrank, "--redis", "unix://"+a.store.Socket)
	case "memory":
		err = a.serve(ctx, p.cabrank, "--test-functions")
	default:
		err = fmt.Errorf("no arm %q", name)
	}
	return a, err
}

// stop ends its processes.
func (a *arm) stop() {
	a.cancel()
	for _, cmd := range []*exec.Cmd{a.server, a.callee} {
		if cmd != nil {
			_ = cmd.Wait() // it was killed
		}
	}
	if a.store != nil {
		a.store.Stop()
	}
}

// serve starts cabrank socket serve, which says in its log where it listens.
func (a *arm) serve(ctx context.Context, program string, flags ...string) error {
	args := append([]string{"socket", "serve", "--listen", "127.0.0.1:0", "--log-format", "json", "--max-handshakes", "100000"}, flags...)
	a.server = exec.CommandContext(ctx, program, args...)
	log, err := a.server.StderrPipe()
	if err != nil {
		return err
	}
	if err := a.server.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(log).ReadBytes('\n')
	var said struct {
		Addr string `json:"addr"`
	}
	if err = errors.Join(err, json.Unmarshal(line, &said)); err != nil || said.Addr == "" {
		return fmt.Errorf("%s does not listen: %s %w", program, line, err)
	}
	a.url = "ws://" + said.Addr + "/ws"
	go io.Copy(io.Discard, log) //nolint:errcheck // ends with the process
	return nil
}

// child starts this program in a role and returns the line that it says first.
func child(ctx context.Context, role string, store *redisd.Server) (cmd *exec.Cmd, first string, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, "", err
	}
	args := []string{"-role", role}
	if store != nil {
		args = append(args, "-redis", store.Socket)
	}
	cmd = exec.CommandContext(ctx, self, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	first, err = bufio.NewReader(out).ReadString('\n')
	return cmd, strings.TrimSpace(first), err
}
