// Package fibonacci holds the Python programs of the lab's scenario strategies, so that
// whoever has the binary alone can run it.
package fibonacci

import "embed"

// Files are the programs and their requirements.txt.
//
//go:embed *.py requirements.txt
var Files embed.FS
