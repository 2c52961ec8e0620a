// Package jobs holds the workers of the lab's scenario relay, so that whoever has the
// binary alone can run it.
package jobs

import "embed"

// Files are jobs.proto, ruby/worker.rb and python/worker.py.
//
//go:embed jobs.proto ruby/worker.rb python/worker.py
var Files embed.FS
