// Command macos checks that the tree and its tests compile for macOS: their types, from
// sources. Nothing is compiled, which takes a tenth of the time of `go vet`.
//
//	go run ./test/macos TAGS MODULE
//
// MODULE is the folder of a module.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const arch = "arm64"

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: go run ./test/macos TAGS MODULE")
		os.Exit(2)
	}
	if err := check(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// listed is a package as `go list` tells it. A variant of a package for a test is one of
// its own, with the test's files.
type listed struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	ImportMap  map[string]string
	Module     *struct {
		Main      bool
		GoVersion string
	}
	Error *struct{ Err string }
}

// check asks for the types of all packages of a module, those that are imported first.
func check(tags, in string) error {
	//nolint:gosec // the tags of a build
	cmd := exec.CommandContext(context.Background(), "go", "list", "-e", "-deps", "-test", "-tags", tags, "-json=ImportPath,Dir,GoFiles,ImportMap,Module,Error", "./...")
	cmd.Dir = in
	cmd.Env = append(os.Environ(), "GOOS=darwin", "GOARCH="+arch, "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return err
	}
	var all []error
	known := map[string]*types.Package{"unsafe": types.Unsafe}
	for list := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		switch err := list.Decode(&p); { //nolint:musttag // the names are those of Go
		case errors.Is(err, io.EOF):
			return errors.Join(all...)
		case err != nil:
			return err
		case p.Error != nil:
			all = append(all, errors.New(p.Error.Err))
		case p.ImportPath != "unsafe" && !strings.HasSuffix(p.ImportPath, ".test"):
			all = append(all, p.check(known)...)
		}
	}
}

// check adds the package to those that are known. What our packages import is read
// without the bodies of functions, and its errors are those of others.
func (p *listed) check(known map[string]*types.Package) (found []error) {
	ours := p.Module != nil && p.Module.Main
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return []error{err}
		}
		files = append(files, file)
	}
	config := types.Config{
		IgnoreFuncBodies: !ours,
		Sizes:            types.SizesFor("gc", arch),
		Importer: imported(func(path string) (*types.Package, error) {
			if pkg := known[cmp.Or(p.ImportMap[path], path)]; pkg != nil {
				return pkg, nil
			}
			return nil, fmt.Errorf("%s is not listed", path)
		}),
		Error: func(err error) {
			if ours {
				found = append(found, err)
			}
		},
	}
	if ours {
		config.GoVersion = "go" + p.Module.GoVersion
	}
	path, _, _ := strings.Cut(p.ImportPath, " ")
	known[p.ImportPath], _ = config.Check(path, fset, files, nil) // Error was told
	return found
}

// imported makes an importer of a function.
type imported func(path string) (*types.Package, error)

// Import returns what is known already.
func (f imported) Import(path string) (*types.Package, error) { return f(path) }
