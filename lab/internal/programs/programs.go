// Package programs has the example programs that come with the lab, so that whoever has
// the binary alone can run the scenarios that need them.
package programs

import (
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cabrank/cabrank/examples/fibonacci"
	"github.com/cabrank/cabrank/examples/jobs"
)

// Unpack writes the programs into a folder, each below its name: jobs/ruby/worker.rb.
//
// Errors: those of writing, with the name of the file.
func Unpack(folder string) error {
	for name, files := range map[string]fs.FS{"fibonacci": fibonacci.Files, "jobs": jobs.Files} {
		if err := os.CopyFS(filepath.Join(folder, name), files); err != nil {
			return err
		}
	}
	return nil
}
