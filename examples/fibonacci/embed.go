// Package fibonacci carries the Python programs of this folder, so that whoever has
// only the binary can run them.
package fibonacci

import (
	"embed"
	"os"
)

//go:embed *.py requirements.txt
var files embed.FS

// Unpack writes the programs and their requirements.txt into a folder, which must be
// there.
//
// Errors: those of writing, with the name of the file.
func Unpack(dir string) error { return os.CopyFS(dir, files) }
