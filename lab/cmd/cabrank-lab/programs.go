package main

import (
	"os"
	"os/exec"
	"path/filepath"

	"github.com/cabrank/cabrank/lab/internal/rig"
)

// findPrograms returns this program, and cabrank as it stands beside it or on PATH.
func findPrograms() (rig.Programs, error) {
	self, err := os.Executable()
	if err != nil {
		return rig.Programs{}, err
	}
	p := rig.Programs{Cabrank: filepath.Join(filepath.Dir(self), "cabrank"), Lab: self}
	if _, err := exec.LookPath(p.Cabrank); err != nil {
		p.Cabrank, _ = exec.LookPath("cabrank") // what needs it says that it is not there
	}
	return p, nil
}
