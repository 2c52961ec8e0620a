// Package protofile compiles .proto files: Compile returns their descriptors and those
// of all that they import. The parser is that of protocompile; names, and the options of
// protobuf itself, are resolved here. Options that somebody else has defined are left
// out: they change neither JSON nor the encoding.
package protofile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/bufbuild/protocompile/ast"
	"github.com/bufbuild/protocompile/parser"
	"github.com/bufbuild/protocompile/reporter"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	_ "google.golang.org/protobuf/types/gofeaturespb" // with what follows: the files that standard knows
	_ "google.golang.org/protobuf/types/known/anypb"
	_ "google.golang.org/protobuf/types/known/apipb"
	_ "google.golang.org/protobuf/types/known/durationpb"
	_ "google.golang.org/protobuf/types/known/emptypb"
	_ "google.golang.org/protobuf/types/known/fieldmaskpb"
	_ "google.golang.org/protobuf/types/known/sourcecontextpb"
	_ "google.golang.org/protobuf/types/known/structpb"
	_ "google.golang.org/protobuf/types/known/timestamppb"
	_ "google.golang.org/protobuf/types/known/typepb"
	_ "google.golang.org/protobuf/types/known/wrapperspb"
	_ "google.golang.org/protobuf/types/pluginpb"

	"github.com/cabrank/cabrank/internal/schema"
)

// MaxBytes bounds one file.
const MaxBytes = 16 << 20

// compiler compiles files one after another, each after those that it imports.
type compiler struct {
	folders []string
	read    func(name string) (string, error) // fs.ErrNotExist: there is no such file
	known   *protoregistry.Files
	open    []string // files under way, each imported by the one before it
}

// Compile compiles files, by their names below one of the folders. protobuf's own files
// (google/protobuf/...) need no folder.
//
// Errors: one line, with file, line and column where there is one.
func Compile(ctx context.Context, names, folders []string) (*protoregistry.Files, error) {
	read := func(name string) (string, error) { return readBelow(folders, name) }
	c := &compiler{folders: folders, read: read, known: &protoregistry.Files{}}
	for _, name := range names {
		if err := c.compile(ctx, name); err != nil {
			return nil, explain(err)
		}
	}
	return c.known, nil
}

// explain puts an error on one line, with its place before it.
func explain(err error) error {
	if at, is := errors.AsType[reporter.ErrorWithPos](err); is {
		return fmt.Errorf("%s: %s", at.GetPosition(), schema.OneLine(schema.Plain(at.Unwrap())))
	}
	return errors.New(schema.OneLine(schema.Plain(err)))
}

func (c *compiler) compile(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, err := c.known.FindFileByPath(name); err == nil {
		return nil
	}
	text, err := c.read(name)
	if errors.Is(err, fs.ErrNotExist) {
		if own := standard(name); own != nil {
			return register(c.known, own)
		}
	}
	if err != nil {
		return err
	}
	parsed, err := parse(name, text)
	if err != nil {
		return err
	}
	c.open = append(c.open, name)
	if err := c.imports(ctx, parsed); err != nil {
		return err
	}
	c.open = c.open[:len(c.open)-1]
	f := &file{Result: parsed, known: c.known}
	if err := f.complete(); err != nil {
		return err
	}
	linked, err := protodesc.NewFile(parsed.FileDescriptorProto(), c.known)
	if err != nil {
		return fmt.Errorf("%s: %s", name, schema.Plain(err))
	}
	return c.known.RegisterFile(linked)
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

// parse parses a file. The parser panics at some mistakes, after it has told them.
func parse(name, text string) (parsed parser.Result, err error) {
	handler := reporter.NewHandler(nil) // the first error ends it
	defer func() {
		if recover() != nil {
			parsed, err = nil, cmp.Or(handler.Error(), fmt.Errorf("%s: syntax error", name))
		}
	}()
	text, is2024 := known2023(text)
	tree, err := parser.Parse(name, strings.NewReader(text), handler)
	if err != nil {
		return nil, err
	}
	if err := unknownEdition(tree); err != nil {
		return nil, err
	}
	parsed, err = parser.ResultFromAST(tree, true, handler)
	if err == nil && is2024 {
		parsed.FileDescriptorProto().Edition = descriptorpb.Edition_EDITION_2024.Enum()
	}
	return parsed, err
}

// imports compiles what a file imports.
func (c *compiler) imports(ctx context.Context, parsed parser.Result) error {
	for _, declared := range parsed.AST().Decls {
		imported, is := declared.(*ast.ImportNode)
		if !is {
			continue
		}
		at, name := parsed.AST().NodeInfo(imported.Name), imported.Name.AsString()
		for i, open := range c.open {
			if open == name {
				return reporter.Errorf(at, "files import each other: %s", strings.Join(append(c.open[i:], name), " -> "))
			}
		}
		err := c.compile(ctx, name)
		if errors.Is(err, fs.ErrNotExist) {
			return reporter.Errorf(at, "this import is in none of the import paths (%s): add its folder", strings.Join(c.folders, ", "))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// standard returns a file that comes with protobuf, or nothing. Those with options for
// C++ and Java are empty: such options are left out anyway.
func standard(name string) protoreflect.FileDescriptor {
	switch name {
	case "google/protobuf/cpp_features.proto", "google/protobuf/java_features.proto":
		empty, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{Name: new(name)}, nil)
		if err != nil {
			return nil
		}
		return empty
	}
	if !strings.HasPrefix(name, "google/protobuf/") {
		return nil // nothing else of this program's own
	}
	own, err := protoregistry.GlobalFiles.FindFileByPath(name)
	if err != nil {
		return nil
	}
	return own
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
