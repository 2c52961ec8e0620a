package main

import (
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cabrank/cabrank/examples/fibonacci"
	"github.com/cabrank/cabrank/examples/jobs"
)

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
