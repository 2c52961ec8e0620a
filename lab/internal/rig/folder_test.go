package rig

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// Who makes a folder removes those of the dead, and none of the living.
func TestTempFolder(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	path, remove, err := TempFolder()
	if err != nil {
		t.Fatal(err)
	}
	dead := filepath.Join(os.TempDir(), folderName+"dead")
	if err := os.Mkdir(dead, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dead, lockName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, removeOther, err := TempFolder()
	if err != nil {
		t.Fatal(err)
	}
	removeOther()
	if _, err := os.Stat(path); err != nil {
		t.Errorf("a folder in use: %v", err)
	}
	remove()
	for _, gone := range []string{path, dead} {
		if _, err := os.Stat(gone); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s was left: %v", gone, err)
		}
	}
}
