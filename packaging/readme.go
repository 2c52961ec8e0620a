package main

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// relativeLink matches the target of a Markdown link that is a path of the tree.
func relativeLink() *regexp.Regexp { return regexp.MustCompile(`\]\(([^)#:\s]+)(#[^)\s]*)?\)`) }

// readme is README.md as pages outside the tree show it: links lead to the files of this
// version.
func (r *release) readme() ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(r.Root, "README.md"))
	if err != nil {
		return nil, err
	}
	return linked(text, homepage+"/blob/v"+r.Version), nil
}

// linked leads the relative links of a document below another address.
func linked(text []byte, below string) []byte {
	return relativeLink().ReplaceAllFunc(text, func(link []byte) []byte {
		parts := relativeLink().FindSubmatch(link)
		target := strings.TrimPrefix(path.Clean("/"+string(parts[1])), "/")
		return []byte("](" + below + "/" + target + string(parts[2]) + ")")
	})
}
