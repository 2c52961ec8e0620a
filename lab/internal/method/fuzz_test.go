package method

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// edition2024 has what edition 2024 adds, and what only looks like it.
const edition2024 = `// edition = "2023";
edition = "2024"; /* export message */
package test;
import option "nowhere/options.proto";
option features.enforce_naming_style = STYLE_LEGACY;
option java_package = "import option;'";
export message Export {
  local enum Local { NONE = 0; }
  export message = 1; // a field
  Local local = 2;
  message export {}
}
local message Other { Export x = 1 [json_name = "export message"]; }
service S { rpc Get(Export) returns (Other); }
`

// Whatever is in a file, there is a description or one line.
func FuzzCompile(f *testing.F) {
	texts := map[string]string{}
	for _, name := range []string{"old.proto", "new.proto", "edition.proto", "sub/passed.proto"} {
		text, err := os.ReadFile(filepath.Join("testdata", "protos", name))
		if err != nil {
			f.Fatal(err)
		}
		texts[name] = string(text)
		f.Add(string(text))
	}
	f.Add("syntax = \"proto2\";\nmessage M { extensions 100 to 199 [verification = UNVERIFIED], 500 to max; }")
	f.Add(edition2024)
	f.Fuzz(func(t *testing.T, text string) {
		read := func(name string) (string, error) {
			if name == "fuzzed.proto" {
				return text, nil
			}
			if known, is := texts[name]; is {
				return known, nil
			}
			return "", fs.ErrNotExist
		}
		_, err := compile(t.Context(), []string{"fuzzed.proto"}, nil, read)
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%q", err)
		}
	})
}
