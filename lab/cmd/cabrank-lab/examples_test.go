package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

func TestUnpack(t *testing.T) {
	folder := t.TempDir()
	testkit.Must(t, unpack(folder))
	for _, name := range []string{"jobs/jobs.proto", "jobs/ruby/worker.rb", "jobs/python/worker.py", "fibonacci/front.py"} {
		info, err := os.Stat(filepath.Join(folder, name))
		testkit.Want(t, err == nil && info.Size() != 0, "%s: %v", name, err)
	}
	testkit.Want(t, unpack(folder) != nil, "files of others were replaced")
}
