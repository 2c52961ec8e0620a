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
	"testing"
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

// tree parses every Go file below the root, by folder.
func tree(t *testing.T) map[string]*folder {
	t.Helper()
	folders := map[string]*folder{}
	for _, name := range sourceFiles(t, ".go") {
		p := folders[path.Dir(name)]
		if p == nil {
			p = &folder{fset: token.NewFileSet()}
			folders[path.Dir(name)] = p
		}
		syntax, err := parser.ParseFile(p.fset, filepath.FromSlash(name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		p.files = append(p.files, file{name: name, syntax: syntax})
	}
	return folders
}

// sourceFiles lists the files of the tree with an extension. Hidden folders
// (tools, dependencies, git), installed Node packages, test data and modules
// of their own are not part of it.
func sourceFiles(t *testing.T, extension string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := entry.Name()
		if entry.IsDir() && (base == "node_modules" || base == "testdata" || base == "tools" || name != "." && strings.HasPrefix(base, ".")) {
			return filepath.SkipDir
		}
		if !entry.IsDir() && filepath.Ext(base) == extension {
			names = append(names, filepath.ToSlash(name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(names) == 0 {
		t.Fatalf("no %s files found: is this the root of the tree?", extension)
	}
	return names
}
