package main

import (
	"io/fs"
	"os/exec"
	"strings"
	"testing"

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
