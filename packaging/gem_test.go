package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

// unpack returns the files of a tar as text, and their names with their modes in order.
func unpack(t *testing.T, content io.Reader) (texts map[string]string, names []string) {
	t.Helper()
	texts = map[string]string{}
	for r := tar.NewReader(content); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return texts, names
		}
		must(t, err)
		text, err := io.ReadAll(r)
		must(t, err)
		texts[header.Name] = string(text)
		names = append(names, fmt.Sprintf("%o %s", header.Mode, header.Name))
	}
}

func unzipped(t *testing.T, content string) string {
	t.Helper()
	r, err := gzip.NewReader(strings.NewReader(content))
	must(t, err)
	text, err := io.ReadAll(r)
	must(t, err)
	return string(text)
}

func TestGem(t *testing.T) {
	r := small()
	made, err := gem(r, r.Programs[1])
	need(t, err == nil && made.Name == "cabrank-1.2.3-aarch64-linux.gem", "%v %v", made.Name, err)
	parts, names := unpack(t, bytes.NewReader(made.Content))
	if want := []string{"444 checksums.yaml.gz", "444 data.tar.gz", "444 metadata.gz"}; !slices.Equal(names, want) {
		t.Errorf("the gem has %q, want %q", names, want)
	}
	if want := string(gemChecksums([]byte(parts["metadata.gz"]), []byte(parts["data.tar.gz"]))); unzipped(t, parts["checksums.yaml.gz"]) != want {
		t.Errorf("the checksums are not those of the parts")
	}
	data, names := unpack(t, strings.NewReader(unzipped(t, parts["data.tar.gz"])))
	if want := []string{
		"644 LICENSE", "644 README.md", "644 THIRD-PARTY-LICENSES", "755 exe/cabrank", "755 exe/gruf-relay", "644 lib/cabrank.rb", "755 libexec/aarch64-linux/cabrank",
	}; !slices.Equal(names, want) {
		t.Errorf("the files are %q, want %q", names, want)
	}
	check(t, data["libexec/aarch64-linux/cabrank"] == "program of linux-arm64" && data["LICENSE"] == "MIT",
		"the program or the licence is not that of the release")
	metadata := unzipped(t, parts["metadata.gz"])
	for _, want := range []string{
		"\n  version: 1.2.3\nplatform: aarch64-linux\n", "\ndate: 2026-01-02 00:00:00.000000000 Z\n",
		"\nfiles:\n- LICENSE\n- README.md\n- THIRD-PARTY-LICENSES\n- exe/cabrank\n", "\n- libexec/aarch64-linux/cabrank\nhomepage: " + homepage + "\n",
		"\ndescription: |-\n  Cabrank starts", "\nsummary: " + summary + "\n", "\n  documentation_uri: " + homepage + "/blob/v1.2.3/docs/install.md\n",
	} {
		says(t, metadata, want)
	}
}

func TestGemIsReproducible(t *testing.T) {
	for i, p := range platforms() {
		first, second := small(), small()
		one, err := gem(first, first.Programs[i])
		other, err2 := gem(second, second.Programs[i])
		err = errors.Join(err, err2)
		check(t, err == nil && bytes.Equal(one.Content, other.Content), "%s: two gems of one release differ (%v)", p, err)
	}
}

// RubyGems asks for itself to know pre-releases.
func TestGemOfAPrerelease(t *testing.T) {
	r := small()
	r.Version = "1.2.3-rc.1"
	made, err := gem(r, r.Programs[3])
	need(t, err == nil && made.Name == "cabrank-1.2.3.rc.1-arm64-darwin.gem", "%v %v", made.Name, err)
	parts, _ := unpack(t, bytes.NewReader(made.Content))
	const want = "required_rubygems_version: !ruby/object:Gem::Requirement\n  requirements:\n  - - \">\"\n" +
		"    - !ruby/object:Gem::Version\n      version: 1.3.1\n"
	says(t, unzipped(t, parts["metadata.gz"]), want)
}

func TestPlain(t *testing.T) {
	for _, text := range []string{summary, homepage, contact, authors, license, "0.1.0", "1.2.3.rc.1", "lib/cabrank.rb", "x86_64-linux"} {
		if got, err := plain(text); got != text || err != nil {
			t.Errorf("%q is %q, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", " ", "a ", " a", "1", "1.5", "-", "- a", "a: b", "a:", "a #b", "#a", "@a", "*a", "&a", "!a", "'a'", `"a"`, "[a]", "{a", "a\nb", "%a", "true", "null", "No",
	} {
		if got, err := plain(text); err == nil {
			t.Errorf("%q stands without quotes: %q", text, got)
		}
	}
}
