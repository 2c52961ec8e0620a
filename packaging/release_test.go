package main

import (
	"os"
	"strings"
	"testing"
)

// What packages say of Cabrank has the form that Debian wants of it, which is the
// strictest: a line of less than 80 characters, and a text that ends no line later.
func TestWhatPackagesSay(t *testing.T) {
	check(t, len(summary) < 80 && !strings.HasSuffix(summary, "."), "the summary is no short line without a full stop: %q", summary)
	for line := range strings.Lines(about) {
		check(t, len(strings.TrimSuffix(line, "\n")) <= 80 && strings.TrimSpace(line) != "",
			"a line of the description is empty or has more than 80 characters: %q", line)
	}
	says(t, contact, "@")
}

// The license, the authors and the home page are those of the tree.
func TestConstantsAreThoseOfTheTree(t *testing.T) {
	for name, want := range map[string]string{
		"../LICENSE": authors,
		"../go.mod":  "module " + strings.TrimPrefix(homepage, "https://") + "\n",
	} {
		text, err := os.ReadFile(name)
		check(t, err == nil && strings.Contains(string(text), want), "%s does not say %q (%v)", name, want, err)
	}
	text, err := os.ReadFile("../LICENSE")
	check(t, err == nil && strings.HasPrefix(string(text), license+" License\n"),
		"the license is not %s: %s (%v)", license, text, err)
}

func TestVersionInForm(t *testing.T) {
	for _, test := range []struct{ version, mark, want string }{
		{"1.2.3", ".rc.", "1.2.3"},
		{"1.2.3-rc.1", ".rc.", "1.2.3.rc.1"},
		{"1.2.3-rc.12", "rc", "1.2.3rc12"},
		{"1.2.3-rc.1", "~rc.", "1.2.3~rc.1"},
	} {
		r := release{Version: test.version}
		same(t, r.inForm(test.mark), test.want, "%s with the mark %s", test.version, test.mark)
	}
}

// A version that not all formats can say gets one line.
func TestSourcesThatCannotBePacked(t *testing.T) {
	for version, want := range map[string]string{
		"1.2":          `VERSION is "1.2"; it must have the form`,
		"1.2.3-beta.1": `VERSION is "1.2.3-beta.1"; it must have the form`,
		"v1.2.3":       `VERSION is "v1.2.3"; it must have the form`,
	} {
		_, err := readRelease(t.Context(), service(), sources(t, map[string]string{"VERSION": version + "\n"}))
		check(t, err != nil && strings.Contains(err.Error(), want), "%s: error %v, want %q", version, err, want)
	}
}
