package protofile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/cabrank/cabrank/lab/internal/protofile"
)

// What is compiled here reads and writes the same as what the whole of protocompile,
// with its linker and its options, makes of it.
func TestCompileAgreesWithALinker(t *testing.T) {
	folders := []string{"testdata", "../method/testdata", "../../../proto"}
	for _, name := range []string{"old.proto", "new.proto", "edition.proto", "kinds.proto", "cabrank/example/v1/work.proto"} {
		compiler := protocompile.Compiler{Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: folders})}
		want, err := compiler.Compile(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		known, err := protofile.Compile(t.Context(), []string{name}, folders)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := known.FindFileByPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := describe(got), describe(want[0]); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
}

// describe writes all that the encoding and JSON of a file depend on.
func describe(file protoreflect.FileDescriptor) string {
	var lines []string
	describeTypes(&lines, file)
	for i := range file.Services().Len() {
		for j := range file.Services().Get(i).Methods().Len() {
			m := file.Services().Get(i).Methods().Get(j)
			lines = append(lines, fmt.Sprintf("%s %s %t %s %t", m.FullName(), m.Input().FullName(), m.IsStreamingClient(), m.Output().FullName(), m.IsStreamingServer()))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func describeTypes(lines *[]string, in interface {
	Messages() protoreflect.MessageDescriptors
	Enums() protoreflect.EnumDescriptors
	Extensions() protoreflect.ExtensionDescriptors
}) {
	for i := range in.Enums().Len() {
		e := in.Enums().Get(i)
		for j := range e.Values().Len() {
			*lines = append(*lines, fmt.Sprintf("%s %t %d", e.Values().Get(j).FullName(), e.IsClosed(), e.Values().Get(j).Number()))
		}
	}
	for i := range in.Extensions().Len() {
		*lines = append(*lines, describeField(in.Extensions().Get(i)))
	}
	for i := range in.Messages().Len() {
		m := in.Messages().Get(i)
		*lines = append(*lines, fmt.Sprintf("%s %t %d", m.FullName(), m.IsMapEntry(), m.ExtensionRanges().Len()))
		for j := range m.Fields().Len() {
			*lines = append(*lines, describeField(m.Fields().Get(j)))
		}
		describeTypes(lines, m)
	}
}

func describeField(f protoreflect.FieldDescriptor) string {
	line := fmt.Sprintf("%s %d %s %s packed=%t presence=%t of=%s", f.FullName(), f.Number(), f.Kind(), f.Cardinality(), f.IsPacked(), f.HasPresence(), f.ContainingMessage().FullName())
	if !f.IsExtension() {
		line += " " + f.JSONName()
	}
	if f.Message() != nil {
		line += " " + string(f.Message().FullName())
	}
	if f.Enum() != nil {
		line += " " + string(f.Enum().FullName())
	}
	if one := f.ContainingOneof(); one != nil {
		line += fmt.Sprintf(" in %s %t", one.Name(), one.IsSynthetic())
	}
	return line
}

func TestCompileRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"syntax":           {"message A {\n  string name = ;\n}", "a.proto:3:17: syntax error: unexpected ';'"},
		"number twice":     {"message A {\n  string a = 1;\n  string b = 1;\n}", "a.proto:4:14: message A: fields a and b both have the same tag 1"},
		"unknown type":     {"message A {\n  test.B b = 1;\n}", "a.proto:3:3: unknown type test.B"},
		"not imported":     {"message A {\n  google.protobuf.Any any = 1;\n}", "a.proto:3:3: unknown type google.protobuf.Any"},
		"no message":       {"enum E { NONE = 0; }\nservice S { rpc M(E) returns (E); }", "a.proto:3:19: E is not a message"},
		"unknown answer":   {"message A {}\nservice S { rpc M(A) returns (B); }", "a.proto:3:31: unknown type B"},
		"unknown extendee": {"import \"google/protobuf/descriptor.proto\";\nextend google.protobuf.Fields { string a = 50000; }", "a.proto:3:8: unknown type google.protobuf.Fields"},
		"no such option":   {"option java_pakage = \"a\";", "a.proto:2:8: unknown option java_pakage"},
		"no such part":     {"option java_package.x = 1;", "a.proto:2:8: unknown option java_package"},
		"no such value":    {"message A {\n  repeated int32 a = 1 [packed = 3];\n}", "a.proto:3:34: packed is a bool, not this"},
		"no such enum":     {"option optimize_for = SMALL;", "a.proto:2:23: optimize_for is a enum, not this"},
		"JSON name":        {"message A {\n  int32 a = 1 [json_name = 3];\n}", "a.proto:3:28: this is no JSON name"},
		"no import":        {"import \"shop/item.proto\";", "a.proto:2:8: this import is in none of the import paths ("},
		"circle":           {"import \"a.proto\";", "a.proto:2:8: files import each other: a.proto -> a.proto"},
		"name twice":       {"message A {}\nenum A { NONE = 0; }", `a.proto: descriptor "A" already declared`},
		"alias":            {"enum E { NONE = 0; LEAST = 0; }", "a.proto:2:28: enum E: values NONE and LEAST both have the same numeric value 0"},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "a.proto"), []byte("syntax = \"proto3\";\n"+tc.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := protofile.Compile(t.Context(), []string{"a.proto"}, []string{dir})
		if err == nil || !strings.HasPrefix(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
	}
}

// A file of edition 2024 is compiled, whatever it says of who may use its types; a mistake
// stands where it was made.
func TestEdition2024(t *testing.T) {
	dir := t.TempDir()
	compile := func(text string) (*protoregistry.Files, error) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "a.proto"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return protofile.Compile(t.Context(), []string{"a.proto"}, []string{dir})
	}
	const text = `edition = "2024";
import option "nowhere.proto";
package test;
export message A {
  // export message B {}
  local message export { string x = 1; }
  export message = 1;
  local enum E { NONE = 0; }
  repeated E es = 2;
}
service S { rpc Get(A) returns (A.export); }
`
	older := strings.NewReplacer("2024", "2023", "import option \"nowhere.proto\";", "", "export message A", "message A", "local message", "message", "local enum", "enum").Replace(text)
	want, err := compile(older)
	if err != nil {
		t.Fatal(err)
	}
	got, err := compile(text)
	if err != nil {
		t.Fatal(err)
	}
	gotFile, _ := got.FindFileByPath("a.proto")
	wantFile, _ := want.FindFileByPath("a.proto")
	if got, want := describe(gotFile), describe(wantFile); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if e := protodesc.ToFileDescriptorProto(gotFile).GetEdition(); e != descriptorpb.Edition_EDITION_2024 {
		t.Errorf("edition %v", e)
	}
	for text, want := range map[string]string{
		text + "  local message B { C c = 1; }": "a.proto:12:21: unknown type C",
		`edition = "2031";`:                     `a.proto:1:11: edition "2031" is unknown: 2023 and 2024 are possible`,
		"syntax = \"proto2\";\nmessage M { extensions 100 to 199 [verification = UNVERIFIED], 500 to max; }": "a.proto:2:62: syntax error: expecting ';'",
	} {
		if _, err := compile(text); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
