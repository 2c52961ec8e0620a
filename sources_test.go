package cabrank_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// file is one Go file, whatever its build tags.
type file struct {
	name   string // slash-separated, from the root
	syntax *ast.File
}

func (f file) isTest() bool          { return strings.HasSuffix(f.name, "_test.go") }
func (f file) isGenerated() bool     { return ast.IsGenerated(f.syntax) }
func (f file) explainsPackage() bool { return f.syntax.Doc != nil && f.syntax.Doc.Text() != "" }

// folder is the Go files of one folder, tests included.
type folder struct {
	files []file
	fset  *token.FileSet
}

// code returns what people wrote and the product runs.
func (p *folder) code() []file {
	return slices.DeleteFunc(slices.Clone(p.files), func(f file) bool { return f.isTest() || f.isGenerated() })
}

// written is false for folders with generated code alone.
func (p *folder) written() bool { return !allFiles(p.files, file.isGenerated) }

func (p *folder) at(n ast.Node) string {
	pos := p.fset.Position(n.Pos())
	return fmt.Sprintf("%s:%d", filepath.ToSlash(pos.Filename), pos.Line)
}

func allFiles(files []file, is func(file) bool) bool {
	return !slices.ContainsFunc(files, func(f file) bool { return !is(f) })
}

// tree returns every Go file below the root, parsed once for all tests, by folder.
func tree(t *testing.T) map[string]*folder {
	t.Helper()
	folders, err := parseTree()
	testkit.Must(t, err)
	return folders
}

var parseTree = sync.OnceValues(func() (map[string]*folder, error) {
	names, err := walkSources(".go")
	if err != nil {
		return nil, err
	}
	folders := map[string]*folder{}
	for _, name := range names {
		p := folders[path.Dir(name)]
		if p == nil {
			p = &folder{fset: token.NewFileSet()}
			folders[path.Dir(name)] = p
		}
		syntax, err := parser.ParseFile(p.fset, filepath.FromSlash(name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		p.files = append(p.files, file{name: name, syntax: syntax})
	}
	return folders, nil
})

// sourceFiles lists the files of the tree whose names end so. Hidden folders
// (tools, dependencies, git), installed Node packages, test data and modules
// of their own are not part of it.
func sourceFiles(t *testing.T, extension string) []string {
	t.Helper()
	names, err := walkSources(extension)
	testkit.Must(t, err)
	testkit.Need(t, len(names) != 0, "no %s files found: is this the root of the tree?", extension)
	return names
}

func walkSources(extension string) (names []string, err error) {
	err = filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := entry.Name()
		if entry.IsDir() && (base == "node_modules" || base == "testdata" || base == "tools" || name != "." && strings.HasPrefix(base, ".")) {
			return filepath.SkipDir
		}
		if !entry.IsDir() && strings.HasSuffix(base, extension) {
			names = append(names, filepath.ToSlash(name))
		}
		return nil
	})
	return names, err
}

// mostBytes is what one file of the tree may have. Everybody clones it, for ever:
// programs, archives and recordings have no place in it.
const mostBytes = 512 << 10

// A file that is built or installed stays out of the tree, and a link shows only
// what the machine has on which it was made.
func TestTreeHoldsSourcesOnly(t *testing.T) {
	// As in .gitignore.
	paths := []string{".git", "bin", "dist", "cabrank", ".tools", ".deps", "bench/out"}
	names := []string{"node_modules", "__pycache__", "target"}
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
			if !strings.HasPrefix(name, "deploy/helm/cabrank/files/") { // to what stands beside the chart
				t.Errorf("%s is a link", name)
			}
			return nil
		}
		testkit.Want(t, !strings.HasPrefix(name, "-"), "%s is a result: was it added by mistake?", name)
		info, err := entry.Info()
		if err == nil && info.Size() > mostBytes {
			t.Errorf("%s has %d bytes, at most %d are allowed: was it added by mistake?", name, info.Size(), mostBytes)
		}
		return err
	})
	testkit.Must(t, err)
}
