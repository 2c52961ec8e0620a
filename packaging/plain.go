package main

import (
	"os"
	"path"
	"path/filepath"
)

// archive is for hosts without a package manager that this file knows: a folder with the
// program and what belongs to it, to be copied below /usr/local.
func archive(r *release, p program) (artifact, error) {
	folder := "cabrank-" + r.Version + "-" + p.String()
	files := []file{{Name: path.Join(folder, "cabrank"), Mode: 0o755, Content: p.Content}}
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		content, err := os.ReadFile(filepath.Join(r.Root, name))
		if err != nil {
			return artifact{}, err
		}
		files = append(files, file{Name: path.Join(folder, name), Mode: 0o644, Content: content})
	}
	content, err := tarGz(files, r.Date)
	return artifact{Name: folder + ".tar.gz", Content: content}, err
}
