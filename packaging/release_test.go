package main

import (
	"os"
	"strings"
	"testing"
)

// What packages say of Cabrank has the form that Debian wants of it, which is the
// strictest: a line of less than 80 characters, and a text that ends no line later.
func TestWhatPackagesSay(t *testing.T) {
	if len(summary) >= 80 || strings.HasSuffix(summary, ".") {
		t.Errorf("the summary is no short line without a full stop: %q", summary)
	}
	for line := range strings.Lines(about) {
		if len(strings.TrimSuffix(line, "\n")) > 80 || strings.TrimSpace(line) == "" {
			t.Errorf("a line of the description is empty or has more than 80 characters: %q", line)
		}
	}
	if !strings.Contains(contact, "@") {
		t.Errorf("%q is no address", contact)
	}
}

// The license, the authors and the home page are those of the tree.
func TestConstantsAreThoseOfTheTree(t *testing.T) {
	for name, want := range map[string]string{
		"../LICENSE": authors,
		"../go.mod":  "module " + strings.TrimPrefix(homepage, "https://") + "\n",
	} {
		text, err := os.ReadFile(name)
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s does not say %q (%v)", name, want, err)
		}
	}
	text, err := os.ReadFile("../LICENSE")
	if err != nil || !strings.HasPrefix(string(text), license+" License\n") {
		t.Errorf("the license is not %s: %s (%v)", license, text, err)
	}
}

func TestVersionInForm(t *testing.T) {
	for _, test := range []struct{ version, mark, want string }{
		{"1.2.3", ".rc.", "1.2.3"},
		{"1.2.3-rc.1", ".rc.", "1.2.3.rc.1"},
		{"1.2.3-rc.12", "rc", "1.2.3rc12"},
		{"1.2.3-rc.1", "~rc.", "1.2.3~rc.1"},
	} {
		r := release{Version: test.version}
		if got := r.inForm(test.mark); got != test.want {
			t.Errorf("%s with the mark %s is %s, want %s", test.version, test.mark, got, test.want)
		}
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
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", version, err, want)
		}
	}
}
