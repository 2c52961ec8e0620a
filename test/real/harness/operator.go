package harness

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

// Operator does with a running cabrank what people do: by its commands, over its
// control socket.
type Operator struct {
	Binary string
	Socket string
}

// NewOperator returns one for the cabrank that was started with this path of a
// control socket.
func NewOperator(t testing.TB, socket string) *Operator {
	t.Helper()
	return &Operator{Binary: CabrankBinary(t), Socket: socket}
}

// Run runs `cabrank COMMAND`. The error has what the command said.
func (o *Operator) Run(within time.Duration, command string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	cmd := exec.CommandContext(ctx, o.Binary, append([]string{command, "--control", o.Socket}, args...)...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("cabrank %s %s: %w\n%s", command, strings.Join(args, " "), err, out)
	}
	return nil
}

// OperatorStatus is what the tests need of GET /v1/status.
type OperatorStatus struct {
	PID        int    `json:"pid"`
	State      string `json:"state"`
	Wanted     int    `json:"wanted"`
	Ready      int    `json:"ready"`
	Generation int    `json:"generation"`
	Workers    []struct {
		Name    string `json:"name"`
		PID     int    `json:"pid"`
		State   string `json:"state"`
		Address string `json:"address"`
	} `json:"workers"`
	Upstreams []struct {
		Address string `json:"address"`
		State   string `json:"state"`
	} `json:"upstreams"`
	Roll *struct {
		Running bool `json:"running"`
	} `json:"roll"`
}

// Status asks for the status.
func (o *Operator) Status() (*OperatorStatus, error) {
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", o.Socket)
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
	var s OperatorStatus
	return &s, json.NewDecoder(answer.Body).Decode(&s)
}

var errOther = errors.New("there was no fault")

// Await asks for the status until it is as wanted.
func (o *Operator) Await(within time.Duration, what string, done func(*OperatorStatus) bool) error {
	deadline := time.Now().Add(within)
	pause := time.NewTicker(50 * time.Millisecond)
	defer pause.Stop()
	for {
		s, err := o.Status()
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
