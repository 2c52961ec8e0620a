package cabrank_test

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mostBytes is what one file of the tree may have. Everybody clones it, for ever:
// programs, archives and recordings have no place in it.
const mostBytes = 512 << 10

// A file that is built or installed stays out of the tree, and a link shows only
// what the machine has on which it was made.
func TestTreeHoldsSourcesOnly(t *testing.T) {
	// As in .gitignore.
	paths := []string{".git", "bin", "cabrank", ".tools", ".deps", "bench/out"}
	names := []string{"node_modules", "__pycache__"}
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		ignored := slices.Contains(paths, name) || slices.Contains(names, entry.Name())
		switch {
		case ignored && entry.IsDir():
			return fs.SkipDir
		case ignored || entry.IsDir() || strings.HasSuffix(name, ".test") || strings.HasSuffix(name, ".prof"):
			return nil
		case entry.Type()&fs.ModeSymlink != 0:
			t.Errorf("%s is a link", name)
			return nil
		}
		info, err := entry.Info()
		if err == nil && info.Size() > mostBytes {
			t.Errorf("%s has %d bytes, at most %d are allowed: was it added by mistake?", name, info.Size(), mostBytes)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
