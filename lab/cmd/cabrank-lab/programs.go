package main

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/cabrank/cabrank/examples/fibonacci"
	"github.com/cabrank/cabrank/examples/jobs"
	"github.com/cabrank/cabrank/internal/cli"
	"github.com/cabrank/cabrank/lab/internal/rig"
)

// findPrograms returns this program, and cabrank: the one that has started this, or as it
// stands beside it or on PATH. Without one it is "cabrank", which what needs it cannot find.
func findPrograms() (rig.Programs, error) {
	self, err := os.Executable()
	if err != nil {
		return rig.Programs{}, err
	}
	for _, path := range []string{os.Getenv(cli.ProgramVariable), filepath.Join(filepath.Dir(self), "cabrank"), "cabrank"} {
		if found, err := exec.LookPath(path); err == nil {
			return rig.Programs{Cabrank: found, Lab: self}, nil
		}
	}
	return rig.Programs{Cabrank: "cabrank", Lab: self}, nil
}

// stamps matches what `cabrank version` says of version and commit.
var stamps = regexp.MustCompile(`(?m)^(?:version|commit): (.*)$`)

// versionOf asks a cabrank for its version and commit; "none" if there is none.
func versionOf(ctx context.Context, cabrank string) string {
	out, _ := exec.CommandContext(ctx, cabrank, "version").Output()
	var said []string
	for _, m := range stamps.FindAllSubmatch(out, -1) {
		said = append(said, string(m[1]))
	}
	if len(said) == 0 {
		return "none"
	}
	return strings.Join(said, " ")
}

// unpack writes the example programs that come with the lab into a folder, each below its
// name: jobs/ruby/worker.rb. So whoever has the binary alone can run the scenarios that
// need them.
//
// Errors: those of writing, with the name of the file.
func unpack(folder string) error {
	for name, files := range map[string]fs.FS{"fibonacci": fibonacci.Files, "jobs": jobs.Files} {
		if err := os.CopyFS(filepath.Join(folder, name), files); err != nil {
			return err
		}
	}
	return nil
}
