package method

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// A mistake stands where it was made, also where the parser panics behind it.
func TestCompileRefuses(t *testing.T) {
	for _, tc := range map[string]struct{ text, want string }{
		"edition":          {`edition = "2031";`, `a.proto:1:11: edition value "2031" not recognized; should be one of ["2023"]`},
		"panic":            {"syntax = \"proto2\";\nmessage M { extensions 100 to 199 [verification = UNVERIFIED], 500 to max; }", "a.proto:2:62: syntax error: expecting ';'"},
		"syntax":           {"message A {\n  string name = ;\n}", "a.proto:3:17: syntax error: unexpected ';'"},
		"number twice":     {"message A {\n  string a = 1;\n  string b = 1;\n}", "a.proto:4:14: message A: fields a and b both have the same tag 1"},
		"unknown type":     {"message A {\n  test.B b = 1;\n}", "a.proto:3:3: field A.b: unknown type test.B"},
		"not imported":     {"message A {\n  google.protobuf.Any any = 1;\n}", "a.proto:3:3: field A.any: unknown type google.protobuf.Any"},
		"no message":       {"enum E { NONE = 0; }\nservice S { rpc M(E) returns (E); }", "a.proto:3:19: method S.M: invalid request type: E is an enum, not a message"},
		"unknown answer":   {"message A {}\nservice S { rpc M(A) returns (B); }", "a.proto:3:31: method S.M: unknown response type B"},
		"unknown extendee": {"import \"google/protobuf/descriptor.proto\";\nextend google.protobuf.Fields { string a = 50000; }", "a.proto:3:8: unknown extendee type google.protobuf.Fields"},
		"no such option":   {"option java_pakage = \"a\";", "a.proto:2:8: option java_pakage: field java_pakage of google.protobuf.FileOptions does not exist"},
		"no such part":     {"option java_package.x = 1;", "a.proto:2:21: option java_package.x: cannot set field x because java_package is not a message"},
		"no such value":    {"message A {\n  repeated int32 a = 1 [packed = 3];\n}", "a.proto:3:34: field A.a: option packed: expecting bool, got integer"},
		"no such enum":     {"option optimize_for = SMALL;", "a.proto:2:23: option optimize_for: enum google.protobuf.FileOptions.OptimizeMode has no value named SMALL"},
		"JSON name":        {"message A {\n  int32 a = 1 [json_name = 3];\n}", "a.proto:3:28: field A.a: expecting string value for json_name option"},
		"no import":        {"import \"shop/item.proto\";", `a.proto:2:8: could not resolve path "shop/item.proto": it is in none of the import paths (.): add its folder`},
		"circle":           {"import \"a.proto\";", `a.proto:2:8: cycle found in imports: "a.proto" -> "a.proto"`},
		"name twice":       {"message A {}\nenum A { NONE = 0; }", `a.proto:3:6: symbol "A" already defined at a.proto:2:9`},
		"alias":            {"enum E { NONE = 0; LEAST = 0; }", "a.proto:2:28: enum E: values NONE and LEAST both have the same numeric value 0"},
	} {
		if !strings.HasPrefix(tc.text, "edition") && !strings.HasPrefix(tc.text, "syntax") {
			tc.text = "syntax = \"proto3\";\n" + tc.text
		}
		_, err := compile(t.Context(), []string{"a.proto"}, []string{"."}, func(name string) (string, error) {
			if name == "a.proto" {
				return tc.text, nil
			}
			return "", fs.ErrNotExist
		})
		testkit.Refused(t, err, tc.want)
	}
}
