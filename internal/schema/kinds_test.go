package schema_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/cabrank/cabrank/internal/schema"
	"github.com/cabrank/cabrank/internal/testkit"
)

const kindProto = `syntax = "proto3";
package test;
import "google/protobuf/any.proto";
import "google/protobuf/duration.proto";
service Kinds { rpc Echo(Kind) returns (Kind); }
enum Color { RED = 0; BLUE = 1; }
message Kind {
  string text = 1;
  int32 count = 2;
  int64 big = 3;
  bool flag = 4;
  bytes bytes = 5;
  Color color = 6;
  optional int32 maybe = 7;
  repeated Kind list = 8;
  map<string, int32> by_name = 9;
  google.protobuf.Duration lasts = 10;
  google.protobuf.Any any = 11;
}
`

// setOf is a .proto file with what it imports, as protoc writes it.
func setOf(t testing.TB, source string) *descriptorpb.FileDescriptorSet {
	t.Helper()
	compiler := protocompile.Compiler{Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{
		Accessor: protocompile.SourceAccessorFromMap(map[string]string{"a.proto": source}),
	})}
	compiled, err := compiler.Compile(context.Background(), "a.proto")
	testkit.Must(t, err)
	set := &descriptorpb.FileDescriptorSet{}
	for i := range compiled[0].Imports().Len() {
		set.File = append(set.File, protodesc.ToFileDescriptorProto(compiled[0].Imports().Get(i).FileDescriptor))
	}
	set.File = append(set.File, protodesc.ToFileDescriptorProto(compiled[0]))
	return set
}

// kindSet is kindProto with what it imports, and a file that lacks something.
func kindSet(t testing.TB) []byte {
	t.Helper()
	set := setOf(t, kindProto)
	lacking := &descriptorpb.FileDescriptorProto{
		Name: new("lacking.proto"), Package: new("test"), Syntax: new("proto3"), Dependency: []string{"missing.proto"},
		MessageType: []*descriptorpb.DescriptorProto{{Name: new("Lacking"), Field: []*descriptorpb.FieldDescriptorProto{{
			Name: new("missing"), JsonName: new("missing"), Number: new(int32(1)), TypeName: new(".test.Missing"),
			Label: new(descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL), Type: new(descriptorpb.FieldDescriptorProto_TYPE_MESSAGE),
		}}}},
	}
	set.File = append(set.File, lacking)
	encoded, err := proto.Marshal(set)
	testkit.Must(t, err)
	return encoded
}

func kindFiles(t testing.TB) *schema.Files {
	t.Helper()
	return filesOf(t, kindSet(t))
}

func filesOf(t testing.TB, encoded []byte) *schema.Files {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kinds.pb")
	testkit.Must(t, os.WriteFile(path, encoded, 0o600))
	files, err := schema.ReadFiles([]string{path})
	testkit.Must(t, err)
	return files
}
