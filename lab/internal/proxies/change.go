package proxies

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"
)

// changeTime bounds how long a proxy may take to be told.
const changeTime = 5 * time.Second

// changeHAProxy asks over its socket, a line for each worker (management.txt, "set
// server"): what may get calls is ready, the others are under maintenance.
func changeHAProxy(ctx context.Context, _ string, _ int, c Config) error {
	for _, w := range c.Workers {
		state := "ready"
		if w.Out {
			state = "maint"
		}
		conn, err := new(net.Dialer).DialContext(ctx, "unix", c.Control)
		if err != nil {
			return err
		}
		_ = conn.SetDeadline(time.Now().Add(changeTime)) // of an open connection
		_, err = fmt.Fprintf(conn, "set server workers/%s state %s\n", w.Name, state)
		answer, readErr := io.ReadAll(io.LimitReader(conn, 4096))
		conn.Close()
		switch said := strings.TrimSpace(string(answer)); {
		case err != nil:
			return err
		case readErr != nil:
			return readErr
		case said != "":
			return fmt.Errorf("it says %q", said)
		}
	}
	return nil
}

// changeEnvoy puts another file in the place of that which it watches.
func changeEnvoy(_ context.Context, _ string, _ int, c Config) error { return writeMembers(c) }

// changeNginx writes the configuration anew and has it read: new worker processes serve
// new connections, the old ones finish the calls that they have.
func changeNginx(_ context.Context, folder string, pid int, c Config) error {
	nginx, _ := Find("nginx")
	if _, err := nginx.Write(folder, c); err != nil {
		return err
	}
	return syscall.Kill(pid, syscall.SIGHUP)
}

// changeNghttpx posts its backends (nghttpx(1), "POST /api/v1beta1/backendconfig").
func changeNghttpx(ctx context.Context, _ string, _ int, c Config) error {
	var lines strings.Builder
	for _, w := range c.Workers {
		if !w.Out {
			fmt.Fprintf(&lines, "backend=%s\n", nghttpxBackend(w))
		}
	}
	ctx, cancel := context.WithTimeout(ctx, changeTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.Control+"/api/v1beta1/backendconfig", strings.NewReader(lines.String()))
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // no proxy of the environment
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	said, _ := io.ReadAll(io.LimitReader(answer.Body, 4096)) // for people
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("it says %s: %s", answer.Status, said)
	}
	return nil
}
