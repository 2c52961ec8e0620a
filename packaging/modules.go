package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
)

// module is code of others that is in a program.
type module struct {
	Path, Version string   // as the program says
	Sum           string   // "h1:…" of go.sum
	Dir           string   // where its sources are on this machine
	License       string   // as SPDX names it
	In            []string // names of the platforms whose program has it
}

func (m module) String() string { return m.Path + " " + m.Version }

// buildInfo reads what the linker has written into a program.
func (p program) buildInfo() (*debug.BuildInfo, error) {
	return buildinfo.Read(bytes.NewReader(p.Content))
}

// ours is the module that others of ours have in them.
const ours = "github.com/cabrank/cabrank"

// readModules lists the modules in any of the programs, sorted by path, with the folders
// of their sources: those from which the programs were built a moment ago.
func (r *release) readModules(ctx context.Context) error {
	byPath := map[string]module{}
	for _, p := range r.Programs {
		info, err := p.buildInfo()
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		r.Go = info.GoVersion
		for _, m := range info.Deps {
			if m.Path == ours {
				continue
			}
			if m.Replace != nil {
				m = m.Replace
			}
			byPath[m.Path] = module{Path: m.Path, Version: m.Version, Sum: m.Sum, In: append(byPath[m.Path].In, p.String())}
		}
	}
	folders, err := moduleFolders(ctx, filepath.Join(r.Root, r.Module), byPath)
	if err != nil {
		return err
	}
	for path, m := range byPath {
		m.Dir = folders[path]
		r.Modules = append(r.Modules, m)
	}
	slices.SortFunc(r.Modules, func(a, b module) int { return strings.Compare(a.Path, b.Path) })
	return nil
}

// moduleFolders asks Go where the sources of modules are, by path.
func moduleFolders(ctx context.Context, root string, modules map[string]module) (map[string]string, error) {
	args := []string{"-C", root, "list", "-m", "-json"}
	for _, m := range modules {
		args = append(args, m.Path+"@"+m.Version)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list -m: %w", err)
	}
	folders := map[string]string{}
	for lines := json.NewDecoder(bytes.NewReader(out)); ; {
		var m struct {
			Path string `json:"Path"`
			Dir  string `json:"Dir"`
		}
		if err := lines.Decode(&m); errors.Is(err, io.EOF) {
			return folders, nil
		} else if err != nil {
			return nil, err
		}
		folders[m.Path] = m.Dir
	}
}
