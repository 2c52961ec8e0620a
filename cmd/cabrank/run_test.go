package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cabrank/cabrank/internal/config"
)

// A command that is not there gets the hint that fits how it was written.
func TestStartHint(t *testing.T) {
	for _, test := range []struct {
		command []string
		err     error
		want    string
	}{
		{config.DefaultCommand(), exec.ErrNotFound, "the workers are gruf's"},
		{[]string{"ruby worker.rb"}, exec.ErrNotFound, "leave out the quotes"},
		{[]string{"ruby bin/worker.rb"}, fs.ErrNotExist, "leave out the quotes"},
		{[]string{"cd", "app"}, exec.ErrNotFound, "not by a shell"},
		{[]string{"./worker"}, fs.ErrNotExist, ""},
		{[]string{"./worker"}, fs.ErrPermission, ""},
		{[]string{"worker"}, nil, ""},
	} {
		got := startHint(test.command, test.err)
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%q, %v: %q, want %q", test.command, test.err, got, test.want)
		}
	}
}

// The first line of the log has what was chosen for the user, and never the
// command, which may hold secrets.
func TestAnnounce(t *testing.T) {
	for _, test := range []struct {
		cfg  config.Config
		want string
	}{
		{config.Config{Command: []string{"w", "--token=plum"}, Workers: config.Workers{Count: 3, PoolSize: 2, Transport: "tcp"}},
			"msg=starting version=dev workers=3 transport=tcp slots=2\n"},
		{config.Config{File: "cabrank.yml", Upstreams: []string{"a:1", "b:1"}, Workers: config.Workers{PoolSize: 5}},
			"msg=starting version=dev config=cabrank.yml upstreams=2 slots=5\n"},
	} {
		var log bytes.Buffer
		s := &service{cfg: &test.cfg, log: slog.New(slog.NewTextHandler(&log, nil))}
		s.announce()
		if got := log.String(); !strings.HasSuffix(got, test.want) {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

// nohup keeps cabrank running when its terminal goes.
func TestHangupStopsUnlessIgnored(t *testing.T) {
	if signal.Ignored(syscall.SIGHUP) {
		t.Skip("the tests themselves run under nohup")
	}
	if !slices.Contains(stopSignals(), os.Signal(syscall.SIGHUP)) {
		t.Error("a hangup does not stop")
	}
	signal.Ignore(syscall.SIGHUP)
	defer signal.Reset(syscall.SIGHUP)
	if slices.Contains(stopSignals(), os.Signal(syscall.SIGHUP)) {
		t.Error("an ignored hangup stops")
	}
}

// A cabrank that refuses the call has answered.
func TestUnreached(t *testing.T) {
	for message, want := range map[string]bool{
		"connection error: desc = \"transport: refused\"": true,
		"cabrank: shutting down":                          false,
	} {
		err := fmt.Errorf("call 1: %w", status.Error(codes.Unavailable, message))
		if got := unreached(err); got != want {
			t.Errorf("%s: %v, want %v", message, got, want)
		}
	}
	if unreached(status.Error(codes.Unknown, "")) || unreached(nil) {
		t.Error("only UNAVAILABLE can mean that nobody is there")
	}
}
