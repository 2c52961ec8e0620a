package cabrank_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// packageName matches the name of a package up to its number, in all of their forms.
var packageName = regexp.MustCompile(`\bcabrank(?:-(?:linux|darwin)-[a-z0-9]+)?[-_](\d+\.\d+\.\d+(?:[-~.]?rc\.?\d+)?)`)

// The version is in the file VERSION alone. What has to name it as well says the same:
// the newest number of the change log, if there was a release, and the packages in the
// documents.
func TestVersionIsOneNumber(t *testing.T) {
	version := strings.TrimSpace(read(t, "VERSION"))
	newest := regexp.MustCompile(`(?m)^## \[(\d[^\]]*)\]`).FindStringSubmatch(read(t, "CHANGELOG.md"))
	if len(newest) > 1 && newest[1] != version {
		t.Errorf("CHANGELOG.md says that %s is the newest release, VERSION says %s", newest[1], version)
	}
	for _, name := range sourceFiles(t, ".md") {
		if name == "CHANGELOG.md" {
			continue
		}
		for _, m := range packageName.FindAllStringSubmatch(read(t, name), -1) {
			if strings.NewReplacer("~", "", "-", "", ".", "").Replace(m[1]) != strings.NewReplacer("-", "", ".", "").Replace(version) {
				t.Errorf("%s names the package %s, VERSION says %s", name, m[0], version)
			}
		}
	}
}

func TestPackageNames(t *testing.T) {
	for name, want := range map[string]string{
		"cabrank-0.1.0-linux-amd64.tar.gz":          "0.1.0",
		"cabrank-1.2.3-x86_64-linux.gem":            "1.2.3",
		"cabrank-0.1.0-py3-none-manylinux_2_17":     "0.1.0",
		"cabrank-0.1.0.tgz":                         "0.1.0",
		"cabrank-linux-x64-0.1.0.tgz":               "0.1.0",
		"cabrank_0.1.0_amd64.deb":                   "0.1.0",
		"cabrank-0.1.0-image.tar":                   "0.1.0",
		"cabrank-0.1.0.cdx.json":                    "0.1.0",
		"cabrank-1.2.3-rc.1-darwin-arm64.tar.gz":    "1.2.3-rc.1",
		"cabrank_1.2.3~rc.1_arm64.deb":              "1.2.3~rc.1",
		"cabrank-1.2.3rc1-py3-none-any.whl":         "1.2.3rc1",
		"cabrank-darwin-arm64-1.2.3-rc.1.tgz":       "1.2.3-rc.1",
		"cabrank-new, cabrank 5, cabrank-linux-x64": "",
	} {
		got := ""
		if m := packageName.FindStringSubmatch(name); m != nil {
			got = m[1]
		}
		testkit.Want(t, got == want, "the number in %s is %q, want %q", name, got, want)
	}
}
