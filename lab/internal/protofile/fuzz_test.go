package protofile

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoregistry"
)

// Whatever is in a file, there is a description or one line.
func FuzzCompile(f *testing.F) {
	texts := map[string]string{}
	for _, name := range []string{"old.proto", "new.proto", "edition.proto", "sub/passed.proto"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		texts[name] = string(text)
		f.Add(string(text))
	}
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
		c := &compiler{read: read, known: &protoregistry.Files{}}
		err := c.compile(t.Context(), "fuzzed.proto")
		if err != nil && strings.Contains(explain(err).Error(), "\n") {
			t.Errorf("%q", err)
		}
	})
}
