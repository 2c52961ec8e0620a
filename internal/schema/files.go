package schema

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// Files are methods that files describe.
//
// Concurrency: immutable.
type Files struct {
	methods  map[string]*Method
	services map[string]bool
}

// has reports whether a service is described. No files describe none.
func (f *Files) has(service string) bool { return f != nil && f.services[service] }

// ReadFiles reads files with descriptors, which protoc writes with --descriptor_set_out
// and --include_imports. A .proto file that is in several of them counts once.
//
// Errors: one line with the name of the file.
func ReadFiles(paths []string) (*Files, error) {
	all := &descriptorpb.FileDescriptorSet{}
	has, bytes := map[string]bool{}, 0
	for _, path := range paths {
		encoded, err := readSome(path, MaxBytes-bytes)
		if err != nil {
			return nil, err
		}
		bytes += len(encoded)
		set := &descriptorpb.FileDescriptorSet{}
		if err := proto.Unmarshal(encoded, set); err != nil || len(set.GetFile()) == 0 {
			return nil, fmt.Errorf("%s: is no file of descriptors: make one by protoc --include_imports --descriptor_set_out=FILE", path)
		}
		for _, file := range set.GetFile() {
			if !has[file.GetName()] {
				has[file.GetName()] = true
				all.File = append(all.File, file)
			}
		}
	}
	if len(all.GetFile()) > MaxFiles {
		return nil, fmt.Errorf("more than %d .proto files are described", MaxFiles)
	}
	methods, err := methodsIn(all)
	if err != nil {
		return nil, err
	}
	if len(paths) > 0 && len(methods) == 0 {
		return nil, errors.New("no method is described, or none with all that it needs: give protoc --include_imports")
	}
	files := &Files{methods: methods, services: map[string]bool{}}
	for path := range methods {
		files.services[serviceOf(path)] = true
	}
	return files, nil
}

func readSome(path string, most int) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	encoded, err := io.ReadAll(io.LimitReader(file, int64(most)+1))
	if err != nil {
		return nil, err
	}
	if len(encoded) > most {
		return nil, fmt.Errorf("%s: more than %d MiB in all", path, MaxBytes>>20)
	}
	return encoded, nil
}

// methodsIn returns all methods of a set.
func methodsIn(set *descriptorpb.FileDescriptorSet) (map[string]*Method, error) {
	linked, err := Link(set)
	if err != nil {
		return nil, err
	}
	known, all := &types{Types: dynamicpb.NewTypes(linked)}, map[string]*Method{}
	linked.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			maps.Copy(all, methodsOf(file.Services().Get(i), known))
		}
		return true
	})
	return all, nil
}
