package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// artifact is one file of dist/.
type artifact struct {
	Name    string
	Content []byte
}

// packer makes what people of one world install.
type packer func(*release) ([]artifact, error)

// forEach is a packer that makes one package for each program that the format takes: one
// returns an artifact without a name for the others.
func forEach(one func(*release, program) (artifact, error)) packer {
	return func(r *release) (all []artifact, err error) {
		for _, p := range r.Programs {
			a, err := one(r, p)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", p, err)
			}
			if a.Name != "" {
				all = append(all, a)
			}
		}
		return all, nil
	}
}

// pack runs all packers of a release, as many at a time as there are processors, and
// sorts what they make by name.
func pack(r *release) ([]artifact, error) {
	var (
		all    = r.packers()
		made   = make([][]artifact, len(all))
		faults = make([]error, len(all))
		turns  = make(chan struct{}, runtime.GOMAXPROCS(0))
		wait   sync.WaitGroup
	)
	for i, packer := range all {
		wait.Go(func() {
			turns <- struct{}{}
			made[i], faults[i] = packer(r)
			<-turns
		})
	}
	wait.Wait()
	artifacts := slices.Concat(made...)
	slices.SortFunc(artifacts, func(a, b artifact) int { return strings.Compare(a.Name, b.Name) })
	return artifacts, errors.Join(faults...)
}

// checksums is the file that "sha256sum --check" reads.
func checksums(artifacts []artifact) artifact {
	var lines strings.Builder
	for _, a := range artifacts {
		fmt.Fprintf(&lines, "%x  %s\n", sha256.Sum256(a.Content), a.Name)
	}
	return artifact{Name: "SHA256SUMS", Content: []byte(lines.String())}
}

// write puts the artifacts and their checksums into a folder, in place of what it had. It
// takes no folder that holds anything but packages: a slip must not empty a home.
func write(out string, artifacts []artifact) error {
	if _, err := os.Stat(filepath.Join(out, "SHA256SUMS")); err != nil {
		if entries, _ := os.ReadDir(out); len(entries) > 0 {
			return fmt.Errorf("%s has files but no SHA256SUMS: remove it, or name another folder", out)
		}
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for _, a := range append(artifacts, checksums(artifacts)) {
		if err := os.WriteFile(filepath.Join(out, a.Name), a.Content, 0o644); err != nil {
			return err
		}
		fmt.Printf("%9d  %s\n", len(a.Content), filepath.Join(out, a.Name))
	}
	return nil
}
