package method

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/reporter"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/cabrank/cabrank/internal/schema"
)

// maxFileBytes bounds one .proto file.
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
	if len(files.Names) == 0 {
		return nil, errors.New("no .proto file was named")
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
		return io.NopCloser(strings.NewReader(known2023(text))), err
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
		text := schema.OneLine(schema.Plain(at.Unwrap()))
		text = strings.Replace(text, `should be one of ["2023"]`, `should be "2023" or "2024"`, 1) // known2023
		return nil, fmt.Errorf("%s: %s", at.GetPosition(), text)
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

// known2023 returns the text of a file of edition 2024 as one of edition 2023, which
// protocompile knows, with every other word where it was, and any other text as it is.
// What 2024 adds changes neither JSON nor the encoding: who may use a type (export and
// local before message and enum), and imports of files for options alone.
//
// Source: Protobuf Editions, "Edition 2024" and "Language Specification".
func known2023(text string) (older string) {
	if !strings.Contains(text, "2024") {
		return text
	}
	changed := []byte(text)
	var words []string // without blanks and comments
	var places []int   // of the words
	const word = `\s+|//[^\n]*|/\*(?s:.*?)\*/|\w+|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|(?s:.)`
	for _, at := range regexp.MustCompile(word).FindAllStringIndex(text, -1) {
		if w := text[at[0]:at[1]]; strings.TrimSpace(w) != "" && !strings.HasPrefix(w, "//") && !strings.HasPrefix(w, "/*") {
			words, places = append(words, w), append(places, at[0])
		}
	}
	if len(words) < 3 || words[0] != "edition" || words[1] != "=" || strings.Trim(words[2], `"'`) != "2024" {
		return text
	}
	copy(changed[places[2]+1:], "2023")
	for i := 3; i+2 < len(words); i++ {
		blank := -1
		switch before, word, next := words[i-1], words[i], words[i+1]; {
		case before != ";" && before != "{" && before != "}":
		case word == "import" && next == "option":
			blank = i + 1
		case (word == "export" || word == "local") && (next == "message" || next == "enum") && words[i+2] != "=":
			blank = i
		}
		if blank > 0 {
			copy(changed[places[blank]:], strings.Repeat(" ", len(words[blank])))
		}
	}
	return string(changed)
}
