package main

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cabrank/cabrank/internal/cli"
	"github.com/cabrank/cabrank/internal/demo"
	"github.com/cabrank/cabrank/internal/testkit"
)

// runDemo runs one command line and returns its exit status and output.
func runDemo(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	status = execute(t.Context(), append([]string{"demo"}, args...), &out, &errs)
	return status, out.String(), errs.String()
}

func TestDemoCallShowsWhoAnswered(t *testing.T) {
	addr := "unix:" + filepath.Join(t.TempDir(), "greeter.sock")
	status, _, stderr := runDemo(t, "call", "--addr", addr)
	want := "cabrank: nothing answers at " + addr + ": start `cabrank demo` first, or name another --addr\n"
	testkit.Want(t, status == cli.Failed && stderr == want, "without a demo: exit status %d, stderr %q, want %q", status, stderr, want)

	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- demo.Serve(ctx, demo.WorkerOptions{Addr: addr, Name: "worker-9"}) }()
	t.Cleanup(func() {
		cancel()
		testkit.Must(t, <-served)
	})
	waitForDemo(t, addr)
	status, stdout, stderr := runDemo(t, "call", "--addr", addr, "-n", "4", "-c", "2")
	if status != cli.Done || strings.Count(stdout, "  Hello, caller ") != 4 ||
		!strings.Contains(stdout, "4 calls over one connection:\n  worker-9      4  100 %") {
		t.Errorf("exit status %d, stderr %q, stdout:\n%s", status, stderr, stdout)
	}
}

func waitForDemo(t *testing.T, addr string) {
	t.Helper()
	conn, err := demoDial(addr)
	testkit.Must(t, err)
	defer func() { _ = conn.Close() }()
	conn.Connect()
	for state := conn.GetState(); state.String() != "READY"; state = conn.GetState() {
		testkit.Need(t, conn.WaitForStateChange(t.Context(), state), "the worker did not come")
		conn.Connect() // an idle connection stays idle by itself
	}
}

func TestDemoRefusesArguments(t *testing.T) {
	for _, args := range [][]string{{"extra"}, {"call", "extra"}, {"worker", "extra"}, {"call", "-n", "many"}} {
		status, _, stderr := runDemo(t, args...)
		testkit.Want(t, status == cli.Usage && stderr != "", "cabrank demo %v: exit status %d, %q; want 2", args, status, stderr)
	}
}

// A cabrank that refuses the call has answered.
func TestUnreached(t *testing.T) {
	for message, want := range map[string]bool{
		"connection error: desc = \"transport: refused\"": true,
		"cabrank: shutting down":                          false,
	} {
		err := fmt.Errorf("call 1: %w", status.Error(codes.Unavailable, message))
		testkit.Equal(t, unreached(err), want, "%s", message)
	}
	testkit.Want(t, !unreached(status.Error(codes.Unknown, "")) && !unreached(nil), "only UNAVAILABLE can mean that nobody is there")
}
