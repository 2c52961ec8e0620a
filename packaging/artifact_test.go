package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// small is a release of this tree with a program of some bytes for each platform.
func small() *release {
	r := &release{
		product: service(), Root: "..", Version: "1.2.3", Commit: "0123456789ab", Date: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Go: "go1.26.0",
		License: []byte("MIT"), ThirdParty: []byte("theirs"),
		Manuals:     []file{{Name: "man/man1/cabrank.1", Mode: 0o644, Content: []byte(".TH")}},
		Completions: []file{{Name: "zsh/site-functions/_cabrank", Mode: 0o644, Content: []byte("#compdef")}},
	}
	for _, p := range platforms() {
		r.Programs = append(r.Programs, program{platform: p, Content: []byte("program of " + p.String())})
	}
	return r
}

// listing unpacks a tar.gz: names with mode and content.
func listing(t *testing.T, content []byte) (lines []string) {
	t.Helper()
	unzipped, err := gzip.NewReader(bytes.NewReader(content))
	must(t, err)
	for r := tar.NewReader(unzipped); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return lines
		}
		must(t, err)
		check(t, h.Uid == 0 && h.Gid == 0 && h.Uname == "" && h.ModTime.Equal(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
			"%s is of %d:%d %q at %v", h.Name, h.Uid, h.Gid, h.Uname, h.ModTime)
		text, _ := io.ReadAll(r)
		lines = append(lines, h.FileInfo().Mode().String()+" "+h.Name+": "+string(text))
	}
}

func TestArchive(t *testing.T) {
	r := small()
	tree := map[string]string{"README.md": "readme", "CHANGELOG.md": "changes", "examples/cabrank.yml": "server:"}
	for _, name := range systemd() {
		tree[name] = "unit"
	}
	r.Root = sources(t, tree)
	a, err := archive(r, r.Programs[0])
	need(t, err == nil && a.Name == "cabrank-1.2.3-linux-amd64.tar.gz", "%s: %v", a.Name, err)
	want := []string{
		"-rw-r--r-- cabrank-1.2.3-linux-amd64/CHANGELOG.md: changes",
		"-rw-r--r-- cabrank-1.2.3-linux-amd64/LICENSE: MIT",
		"-rw-r--r-- cabrank-1.2.3-linux-amd64/README.md: readme",
		"-rw-r--r-- cabrank-1.2.3-linux-amd64/THIRD-PARTY-LICENSES: theirs",
		"-rwxr-xr-x cabrank-1.2.3-linux-amd64/cabrank: program of linux-amd64",
		"-rw-r--r-- cabrank-1.2.3-linux-amd64/deploy/systemd/cabrank.service: unit",
		"-rw-r--r-- cabrank-1.2.3-linux-amd64/deploy/systemd/cabrank.socket: unit",
		"-rw-r--r-- cabrank-1.2.3-linux-amd64/deploy/systemd/cabrank.yml: unit",
		"-rw-r--r-- cabrank-1.2.3-linux-amd64/examples/cabrank.yml: server:",
		"-rw-r--r-- cabrank-1.2.3-linux-amd64/share/man/man1/cabrank.1: .TH",
		"-rw-r--r-- cabrank-1.2.3-linux-amd64/share/zsh/site-functions/_cabrank: #compdef",
	}
	got := listing(t, a.Content)
	check(t, slices.Equal(got, want), "got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
}

// The order in which files are named does not count, nor does the zone of the time.
func TestTarballIsOfOneForm(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	files := []file{{Name: "b", Mode: 0o644, Content: []byte("2")}, {Name: "a", Mode: 0o755, Content: []byte("1")}}
	one, err := tarGz(files, at)
	must(t, err)
	slices.Reverse(files)
	other, err := tarGz(files, at.In(time.FixedZone("there", 3600)))
	check(t, err == nil && bytes.Equal(one, other), "the same files in another order are other bytes (%v)", err)
	_, err = tarball([]file{{Name: strings.Repeat("n", 300)}}, at)
	check(t, err != nil, "a name that the old format cannot hold is taken")
}

func TestPackersGiveTheSameBytesTwice(t *testing.T) {
	r := small()
	one, err := pack(r)
	must(t, err)
	other, err := pack(r)
	if err != nil || !slices.EqualFunc(one, other, func(a, b artifact) bool { return a.Name == b.Name && bytes.Equal(a.Content, b.Content) }) {
		t.Errorf("two runs differ (%v)", err)
	}
	if !slices.IsSortedFunc(one, func(a, b artifact) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("they are not sorted by name")
	}
}

func TestFaultNamesItsPlatform(t *testing.T) {
	r := small()
	broken := forEach(func(_ *release, p program) (artifact, error) {
		if p.OS == "darwin" {
			return artifact{}, errors.New("no room")
		}
		return artifact{Name: p.String()}, nil
	})
	if _, err := broken(r); err == nil || err.Error() != "darwin-amd64: no room" {
		t.Errorf("error %v", err)
	}
	some := forEach(func(_ *release, p program) (a artifact, err error) {
		if p.Debian != "" {
			a.Name = p.Debian
		}
		return a, nil
	})
	all, err := some(r)
	check(t, err == nil && len(all) == 2, "%d packages, want those of the two that have a name: %v", len(all), err)
}

func TestWrite(t *testing.T) {
	out := filepath.Join(t.TempDir(), "dist")
	for _, name := range []string{"old.txt", "new.txt"} {
		must(t, write(out, []artifact{{Name: name, Content: []byte("hello\n")}}))
	}
	sums, err := os.ReadFile(filepath.Join(out, "SHA256SUMS"))
	want := "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03  new.txt\n"
	check(t, err == nil && string(sums) == want, "checksums %q, want %q (%v)", sums, want, err)
	_, err = os.Stat(filepath.Join(out, "old.txt"))
	check(t, err != nil, "a package of before is still there")
}

// A folder by mistake, say a home, keeps what it has.
func TestWriteTakesNoOtherFolder(t *testing.T) {
	home := sources(t, map[string]string{"letter": "dear"})
	err := write(home, nil)
	check(t, err != nil && strings.Contains(err.Error(), "no SHA256SUMS"), "got %v", err)
	_, err = os.Stat(filepath.Join(home, "letter"))
	check(t, err == nil, "%v", err)
}
