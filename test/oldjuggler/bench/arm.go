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
	"slices"
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

// start starts an arm: old, mixed, redis, new, memory, memory1, proto1, workers, workers1,
// workersproto or bare.
func (p plan) start(ctx context.Context, name string) (a *arm, err error) {
	ctx, cancel := context.WithCancel(ctx)
	a = &arm{name: name, cancel: cancel}
	defer func() {
		if err != nil {
			a.stop()
		}
	}()
	if slices.Contains([]string{"old", "mixed", "redis", "new"}, name) {
		if a.store, err = redisd.Launch(); err != nil {
			return a, err
		}
		if err := p.startCallee(ctx, a); err != nil {
			return a, err
		}
	}
	switch name {
	case "old", "mixed":
		a.server, a.url, err = child(ctx, "server", a.store)
	case "bare":
		a.server, a.url, err = child(ctx, "bare", nil)
	case "redis", "new":
		err = a.serve(ctx, p.cabrank, "--redis", "unix://"+a.store.Socket)
	case "memory", "memory1", "proto1":
		err = a.serve(ctx, p.cabrank, "--test-functions")
	case "workers", "workers1", "workersproto":
		err = a.runWorkers(ctx, p.cabrank)
	default:
		err = fmt.Errorf("no arm %q", name)
	}
	return a, err
}

// startCallee starts the old callee, or, in the arms mixed and new, cabrank socket callee.
func (p plan) startCallee(ctx context.Context, a *arm) (err error) {
	if a.name == "old" || a.name == "redis" {
		a.callee, _, err = child(ctx, "callee", a.store)
		return err
	}
	a.callee, err = startProgram(ctx, &struct{}{}, p.cabrank, "callee", "--redis", "unix://"+a.store.Socket)
	return err
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
func (a *arm) serve(ctx context.Context, program string, flags ...string) (err error) {
	var said struct {
		Addr string `json:"addr"`
	}
	args := append([]string{"serve", "--listen", "127.0.0.1:0", "--max-handshakes", "100000"}, flags...)
	a.server, err = startProgram(ctx, &said, program, args...)
	if err == nil && said.Addr == "" {
		err = fmt.Errorf("%s does not listen", program)
	}
	a.url = "ws://" + said.Addr + "/ws"
	return err
}

// runWorkers starts cabrank run over workers of cabrank demo. Calls that come before
// they are ready wait.
func (a *arm) runWorkers(ctx context.Context, program string) error {
	a.server = exec.CommandContext(ctx, program, "run", "--listen", "127.0.0.1:0", "--socket-path", "/ws", "--workers", "2", "--slots", "50",
		"--transport", "unix", "--probes", "off", "--metrics", "off", "--control", "off", "--log-format", "json", "--",
		program, "demo", "worker", "--work", "0s")
	a.server.Env = append(os.Environ(), "CABRANK_SOCKET_METHODS=/cabrank.demo.v1.Greeter/*")
	log, err := a.server.StderrPipe()
	if err != nil {
		return err
	}
	if err := a.server.Start(); err != nil {
		return err
	}
	for lines := bufio.NewScanner(log); lines.Scan(); {
		var said struct {
			Msg  string `json:"msg"`
			Addr string `json:"addr"`
		}
		if json.Unmarshal(lines.Bytes(), &said) == nil && said.Msg == "listening" {
			a.url = "ws://" + said.Addr + "/ws"
			go io.Copy(io.Discard, log) //nolint:errcheck // ends with the process
			return nil
		}
	}
	return fmt.Errorf("%s does not listen", program)
}

// startProgram starts a command of cabrank socket, and reads the first line of its log.
func startProgram(ctx context.Context, said any, program string, args ...string) (*exec.Cmd, error) {
	cmd := exec.CommandContext(ctx, program, append([]string{"socket", args[0], "--log-format", "json"}, args[1:]...)...)
	log, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(log).ReadBytes('\n')
	if err = errors.Join(err, json.Unmarshal(line, said)); err != nil {
		return cmd, fmt.Errorf("%s says: %s %w", program, line, err)
	}
	go io.Copy(io.Discard, log) //nolint:errcheck // ends with the process
	return cmd, nil
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
