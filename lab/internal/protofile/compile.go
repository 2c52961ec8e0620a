// Package protofile compiles .proto files: Compile returns their descriptors and those
// of all that they import. It is protocompile, and what that lacks: edition 2024.
package protofile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/reporter"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/cabrank/cabrank/internal/schema"
)

// MaxBytes bounds one file.
const MaxBytes = 16 << 20

// Compile compiles files, by their names below one of the folders. protobuf's own files
// (google/protobuf/...) need no folder.
//
// Errors: one line, with file, line and column where there is one.
func Compile(ctx context.Context, names, folders []string) (*protoregistry.Files, error) {
	return compile(ctx, names, func(name string) (string, error) {
		text, err := readBelow(folders, name)
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("it is in none of the import paths (%s): add its folder%w", strings.Join(folders, ", "), silent{err})
		}
		return text, err
	})
}

// silent is an error that adds nothing to a text.
type silent struct{ error }

func (silent) Error() string   { return "" }
func (s silent) Unwrap() error { return s.error }

// compile is Compile of files that read gives; fs.ErrNotExist: there is no such file.
func compile(ctx context.Context, names []string, read func(name string) (string, error)) (*protoregistry.Files, error) {
	var first error // that the parser has told: it panics at some mistakes, behind that
	c := protocompile.Compiler{
		Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{Accessor: func(name string) (io.ReadCloser, error) {
			text, err := read(name)
			return io.NopCloser(strings.NewReader(known2023(text))), err
		}}),
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
	if err != nil {
		return nil, explain(err)
	}
	known := &protoregistry.Files{}
	for _, file := range linked {
		if err := register(known, file); err != nil {
			return nil, explain(err)
		}
	}
	return known, nil
}

// explain puts an error on one line, with its place before it.
func explain(err error) error {
	if at, is := errors.AsType[reporter.ErrorWithPos](err); is {
		text := schema.OneLine(schema.Plain(at.Unwrap()))
		text = strings.Replace(text, `should be one of ["2023"]`, `should be "2023" or "2024"`, 1) // known2023
		return fmt.Errorf("%s: %s", at.GetPosition(), text)
	}
	return errors.New(schema.OneLine(schema.Plain(err)))
}

// readBelow returns the text of a file. The first folder that has it counts.
func readBelow(folders []string, name string) (string, error) {
	for _, folder := range folders {
		path := filepath.Join(folder, filepath.FromSlash(name))
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && info.Size() > MaxBytes {
			err = fmt.Errorf("%s: more than %d MiB", name, MaxBytes>>20)
		}
		if err != nil {
			return "", err
		}
		text, err := os.ReadFile(path)
		return string(text), err
	}
	return "", fs.ErrNotExist
}

// register adds a file and all that it imports.
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
