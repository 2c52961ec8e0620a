package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestUnpack(t *testing.T) {
	folder := t.TempDir()
	if err := unpack(folder); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"jobs/jobs.proto", "jobs/ruby/worker.rb", "jobs/python/worker.py", "fibonacci/front.py"} {
		if info, err := os.Stat(filepath.Join(folder, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := unpack(folder); err == nil {
		t.Error("files of others were replaced")
	}
}
