package method

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// Whatever is in a file, there is a description or one line.
func FuzzCompile(f *testing.F) {
	texts := map[string]string{}
	for _, name := range []string{"old.proto", "new.proto", "edition.proto", "sub/passed.proto"} {
		text, err := os.ReadFile(filepath.Join("testdata", "protos", name))
		testkit.Must(f, err)
		texts[name] = string(text)
		f.Add(string(text))
	}
	f.Add("syntax = \"proto2\";\nmessage M { extensions 100 to 199 [verification = UNVERIFIED], 500 to max; }")
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
		testkit.Want(t, err == nil || !strings.Contains(err.Error(), "\n"), "%q", err)
	})
}
