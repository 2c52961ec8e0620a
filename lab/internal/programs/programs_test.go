package programs_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cabrank/cabrank/lab/internal/programs"
)

func TestUnpack(t *testing.T) {
	folder := t.TempDir()
	if err := programs.Unpack(folder); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"jobs/jobs.proto", "jobs/ruby/worker.rb", "jobs/python/worker.py", "fibonacci/front.py"} {
		if info, err := os.Stat(filepath.Join(folder, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := programs.Unpack(folder); err == nil {
		t.Error("files of others were replaced")
	}
}
