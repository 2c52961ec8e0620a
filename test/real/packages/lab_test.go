//go:build real || soak

package packages_test

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// The lab's archive, unpacked beside the program, is what cabrank lab starts; each has the
// manual of its own commands.
func TestLabArchive(t *testing.T) {
	home := t.TempDir()
	for _, name := range []string{"cabrank", "cabrank-lab"} {
		archive := dist(t, name+"-[0-9]*-"+runtime.GOOS+"-"+runtime.GOARCH+".tar.gz")
		must(t, exec.Command("tar", "-xzf", archive, "--strip-components=1", "-C", home))
	}
	list := exec.Command(filepath.Join(home, "cabrank"), "lab", "list")
	list.Env = []string{"PATH=/usr/bin:/bin"}
	testkit.Says(t, must(t, list), "connections")
	pages, err := filepath.Glob(filepath.Join(home, "share", "man", "man1", "cabrank-lab*"))
	testkit.Want(t, err == nil && len(pages) >= 8, "%d pages of the lab, want one for each command: %v", len(pages), err)
}

// Both Debian packages can be on one host: no file is in two of them.
func TestLabDebian(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{"cabrank", "cabrank-lab"} {
		deb := dist(t, name+"_*_"+runtime.GOARCH+".deb")
		for file := range strings.FieldsSeq(must(t, exec.Command("sh", "-c", `dpkg-deb --fsys-tarfile "$0" | tar -t`, deb))) {
			other := seen[file]
			testkit.Want(t, other == "" || strings.HasSuffix(file, "/"), "%s is in %s and in %s", file, other, name)
			seen[file] = name
		}
		testkit.Want(t, seen["./usr/bin/"+name] == name, "%s is not in its package", name)
	}
}
