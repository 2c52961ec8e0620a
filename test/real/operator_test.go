//go:build real || soak

package real_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// operator does with a running cabrank what people do: by its commands, over its
// control socket.
type operator struct {
	binary string
	socket string
}

// newOperator returns one for the cabrank that was started with this path of a
// control socket.
func newOperator(t testing.TB, socket string) *operator {
	t.Helper()
	return &operator{binary: cabrankBinary(t), socket: socket}
}

// run runs `cabrank COMMAND`. The error has what the command said.
func (o *operator) run(within time.Duration, command string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	cmd := exec.CommandContext(ctx, o.binary, append([]string{command, "--control", o.socket}, args...)...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("cabrank %s %s: %w\n%s", command, strings.Join(args, " "), err, out)
	}
	return nil
}

// operatorStatus is what the tests need of GET /v1/status.
type operatorStatus struct {
	PID        int    `json:"pid"`
	State      string `json:"state"`
	Wanted     int    `json:"wanted"`
	Ready      int    `json:"ready"`
	Generation int    `json:"generation"`
	Workers    []struct {
		Name  string `json:"name"`
		State string `json:"state"`
	} `json:"workers"`
	Upstreams []struct {
		Address string `json:"address"`
		State   string `json:"state"`
	} `json:"upstreams"`
	Roll *struct {
		Running bool `json:"running"`
	} `json:"roll"`
}

// status asks for the status.
func (o *operator) status() (*operatorStatus, error) {
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", o.socket)
		},
	}}
	defer client.CloseIdleConnections()
	answer, err := client.Get("http://cabrank/v1/status")
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status: %s", answer.Status)
	}
	var s operatorStatus
	return &s, json.NewDecoder(answer.Body).Decode(&s)
}

var errOther = errors.New("there was no fault")

// await asks for the status until it is as wanted.
func (o *operator) await(within time.Duration, what string, done func(*operatorStatus) bool) error {
	deadline := time.Now().Add(within)
	pause := time.NewTicker(50 * time.Millisecond)
	defer pause.Stop()
	for {
		s, err := o.status()
		if err == nil && done(s) {
			return nil
		}
		err = cmp.Or(err, errOther)
		if time.Now().After(deadline) {
			return fmt.Errorf("waited %v in vain for: %s; the status is %+v, %w", within, what, s, err)
		}
		<-pause.C
	}
}
