package method

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/cabrank/cabrank/lab/internal/protofile"
)

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
	names, folders, err := files.arrange()
	if err != nil {
		return nil, err
	}
	known, err := protofile.Compile(ctx, names, folders)
	if err != nil {
		return nil, err
	}
	m, err := n.find(known)
	if errors.Is(err, errNoService) {
		return nil, noServiceIn(known, n, files.Names)
	}
	return m, err
}

// arrange returns the names as they are below the folders, and the folders.
func (f Files) arrange() (names, folders []string, err error) {
	if len(f.Names) == 0 {
		return nil, nil, errors.New("no .proto file was named")
	}
	folders = f.Imports
	if len(folders) == 0 {
		folders = []string{"."}
		for _, name := range f.Names {
			if dir := filepath.Dir(name); !slices.Contains(folders, dir) {
				folders = append(folders, dir)
			}
		}
	}
	for _, name := range f.Names {
		below, err := placeBelow(name, folders)
		if err != nil {
			return nil, nil, err
		}
		names = append(names, below)
	}
	return names, folders, nil
}

// placeBelow returns the name that a file has below one of the folders: it is either
// given so, or as a path from here.
func placeBelow(name string, folders []string) (string, error) {
	for _, folder := range folders {
		if isFile(filepath.Join(folder, name)) {
			return filepath.ToSlash(filepath.Clean(name)), nil
		}
	}
	if !isFile(name) {
		return "", fmt.Errorf("%s: no such file, here or below %s", name, strings.Join(folders, ", "))
	}
	for _, folder := range folders {
		if below, ok := relative(folder, name); ok {
			return filepath.ToSlash(below), nil
		}
	}
	return "", fmt.Errorf("%s: is in none of the import paths (%s): add its folder", name, strings.Join(folders, ", "))
}

func relative(folder, name string) (string, bool) {
	from, err := filepath.Abs(folder)
	if err != nil {
		return "", false
	}
	to, err := filepath.Abs(name)
	if err != nil {
		return "", false
	}
	below, err := filepath.Rel(from, to)
	return below, err == nil && filepath.IsLocal(below)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

func noServiceIn(known *protoregistry.Files, n name, files []string) error {
	var services []string
	for file := range known.RangeFiles {
		for i := range file.Services().Len() {
			services = append(services, string(file.Services().Get(i).FullName()))
		}
	}
	if slices.Contains(services, n.whole()) {
		return fmt.Errorf("%s is a service: write %s/METHOD%s", n.whole(), n.whole(), listMethods(known, n.whole()))
	}
	return fmt.Errorf("no service %s in %s%s", n.service, strings.Join(files, ", "), among("services there", n.service, services))
}
