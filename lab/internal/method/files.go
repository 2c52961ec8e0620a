package method

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/reporter"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/cabrank/cabrank/internal/schema"
)

const maxFileBytes = 16 << 20

// Files are .proto files, as the flags of protoc name them.
type Files struct {
	Names []string
	// Imports are the folders in which names, and what the files import, are looked up.
	// Without any it is the current folder, and after it those of the files.
	// protobuf's own files (google/protobuf/...) need no folder.
	Imports []string
}

// FromFiles compiles .proto files and finds a method in them.
//
// Errors: one line: what the compiler says, with file, line and column; a file that
// is not there; no such service or method, with the names that there are.
func FromFiles(ctx context.Context, files Files, method string) (*Method, error) {
	n, err := parseName(method)
	if err != nil {
		return nil, err
	}
	folders := files.Imports
	if len(folders) == 0 {
		folders = []string{"."}
		for _, name := range files.Names {
			if dir := filepath.Dir(name); !slices.Contains(folders, dir) {
				folders = append(folders, dir)
			}
		}
	}
	var below []string
	for _, name := range files.Names {
		if name, err = placeBelow(name, folders); err != nil {
			return nil, err
		}
		below = append(below, name)
	}
	known, err := compile(ctx, below, folders, readFile)
	if err != nil {
		return nil, err
	}
	m, err := n.find(known)
	if errors.Is(err, errNoService) {
		return nil, n.noServiceIn(known, files.Names)
	}
	return m, err
}

// placeBelow returns the name that a file has below one of the folders: it is either
// given so, or as a path from here.
func placeBelow(name string, folders []string) (string, error) {
	isFile := func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && !info.IsDir()
	}
	for _, folder := range folders {
		if isFile(filepath.Join(folder, name)) {
			return filepath.ToSlash(filepath.Clean(name)), nil
		}
	}
	if !isFile(name) {
		return "", fmt.Errorf("%s: no such file, here or below %s", name, strings.Join(folders, ", "))
	}
	for _, folder := range folders {
		from, err := filepath.Abs(folder)
		to, err2 := filepath.Abs(name)
		below, err3 := filepath.Rel(from, to)
		if errors.Join(err, err2, err3) == nil && filepath.IsLocal(below) {
			return filepath.ToSlash(below), nil
		}
	}
	return "", fmt.Errorf("%s: is in none of the import paths (%s): add its folder", name, strings.Join(folders, ", "))
}

func (n name) noServiceIn(known *protoregistry.Files, files []string) error {
	var services []string
	for file := range known.RangeFiles {
		for _, name := range names(file.Services(), protoreflect.ServiceDescriptor.FullName) {
			if name == n.whole() {
				return n.isService(known)
			}
			services = append(services, name)
		}
	}
	return fmt.Errorf("no service %s in %s%s", n.service, strings.Join(files, ", "), among("services there", n.service, services))
}

func readFile(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if info.Size() > maxFileBytes {
		return "", fmt.Errorf("%s: more than %d MiB", path, maxFileBytes>>20)
	}
	text, err := os.ReadFile(path)
	return string(text), err
}

// compile returns the descriptors of files, by their names below one of the folders, and
// of all that they import.
//
// Errors: one line, with file, line and column where there is one.
func compile(ctx context.Context, names, folders []string, read func(path string) (string, error)) (*protoregistry.Files, error) {
	sources := protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: folders, Accessor: func(path string) (io.ReadCloser, error) {
		text, err := read(path)
		return io.NopCloser(strings.NewReader(text)), err
	}})
	var first error // that the parser has told: it panics at some mistakes, behind that
	c := protocompile.Compiler{
		Resolver: protocompile.ResolverFunc(func(name string) (protocompile.SearchResult, error) {
			found, err := sources.FindFileByPath(name)
			if errors.Is(err, fs.ErrNotExist) {
				err = fmt.Errorf("it is in none of the import paths (%s): add its folder", strings.Join(folders, ", "))
			}
			return found, err
		}),
		MaxParallelism: 1,
		Reporter: reporter.NewReporter(func(err reporter.ErrorWithPos) error {
			if first == nil {
				first = err
			}
			return err
		}, nil),
	}
	linked, err := c.Compile(ctx, names...)
	if panicked := (protocompile.PanicError{}); errors.As(err, &panicked) {
		if err = first; err == nil {
			err = fmt.Errorf("%s: syntax error", panicked.File)
		}
	}
	known := &protoregistry.Files{}
	for i := 0; err == nil && i < len(linked); i++ {
		err = register(known, linked[i])
	}
	if at, is := errors.AsType[reporter.ErrorWithPos](err); is {
		return nil, fmt.Errorf("%s: %s", at.GetPosition(), schema.OneLine(schema.Plain(at.Unwrap())))
	} else if err != nil {
		return nil, errors.New(schema.OneLine(schema.Plain(err)))
	}
	return known, nil
}

func register(known *protoregistry.Files, file protoreflect.FileDescriptor) error {
	if _, err := known.FindFileByPath(file.Path()); err == nil {
		return nil
	}
	for i := range file.Imports().Len() {
		if err := register(known, file.Imports().Get(i).FileDescriptor); err != nil {
			return err
		}
	}
	return known.RegisterFile(file)
}
