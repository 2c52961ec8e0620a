package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"testing"
	"time"
)

// debianRelease is one of this tree, with a program of some bytes.
func debianRelease(version string) (*release, program) {
	r := small()
	r.Version = version
	return r, program{platform: platforms()[0], Content: []byte("the program")}
}

func makeDebian(t *testing.T, version string) artifact {
	t.Helper()
	a, err := debian(debianRelease(version))
	must(t, err)
	return a
}

// readAr returns the members of an archive, by the rules of ar(5).
func readAr(t *testing.T, content []byte) (members []file) {
	t.Helper()
	rest, found := bytes.CutPrefix(content, []byte("!<arch>\n"))
	for found && len(rest) > 0 {
		header := rest[:60]
		size, err := strconv.Atoi(strings.TrimSpace(string(header[48:58])))
		need(t, err == nil && string(header[58:]) == "`\n", "no header of a member: %q", header)
		members = append(members, file{Name: strings.TrimSpace(string(header[:16])), Content: rest[60 : 60+size]})
		rest = rest[60+size+size%2:]
	}
	return members
}

// readTarGz returns the entries by name, in order.
func readTarGz(t *testing.T, content []byte) (names []string, entries map[string]file) {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(content))
	must(t, err)
	entries = map[string]file{}
	for r := tar.NewReader(zip); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return names, entries
		}
		text, err2 := io.ReadAll(r)
		if err = errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		check(t, header.Uid == 0 && header.Gid == 0, "%s belongs to %d:%d", header.Name, header.Uid, header.Gid)
		names = append(names, header.Name)
		entries[header.Name] = file{Name: header.Name, Mode: header.FileInfo().Mode(), Content: text}
	}
}

// A package has the three members of deb(5), in their order, and each file after the
// folders above it.
func TestDebian(t *testing.T) {
	a := makeDebian(t, "1.2.3")
	check(t, a.Name == "cabrank_1.2.3_amd64.deb", "the name is %s", a.Name)
	members := readAr(t, a.Content)
	if len(members) != 3 || members[0].Name != "debian-binary" || string(members[0].Content) != "2.0\n" ||
		members[1].Name != "control.tar.gz" || members[2].Name != "data.tar.gz" {
		t.Fatalf("the members are %v", members)
	}
	for _, member := range members[1:] {
		names, entries := readTarGz(t, member.Content)
		seen := map[string]bool{}
		for _, name := range names {
			above := strings.TrimSuffix(name, "/")
			above = above[:max(strings.LastIndex(above, "/"), 0)]
			if seen[name] = true; above != "" && !seen[above+"/"] {
				t.Errorf("%s: %s comes before the folder above it", member.Name, name)
			}
			check(t, entries[name].Mode.Perm()&0o022 == 0, "%s may be written to by others", name)
		}
	}
}

func TestDebianIsTheSameTwice(t *testing.T) {
	one, two := makeDebian(t, "1.2.3"), makeDebian(t, "1.2.3")
	check(t, bytes.Equal(one.Content, two.Content), "two packages of one release differ")
}

func TestDebianControl(t *testing.T) {
	a := makeDebian(t, "1.2.3-rc.4")
	check(t, a.Name == "cabrank_1.2.3~rc.4_amd64.deb", "the name is %s", a.Name)
	_, entries := readTarGz(t, readAr(t, a.Content)[1].Content)
	control := string(entries["./control"].Content)
	for _, line := range []string{
		"Version: 1.2.3~rc.4", "Architecture: amd64", "Homepage: " + homepage,
		"Description: " + summary, "Maintainer: " + authors + " <" + contact + ">",
	} {
		check(t, strings.Contains(control, line+"\n"), "no line %q in\n%s", line, control)
	}
	same(t, string(entries["./conffiles"].Content), "/etc/cabrank/cabrank.yml\n", "conffiles")
	for _, script := range []string{"./postinst", "./prerm", "./postrm"} {
		if f := entries[script]; f.Mode.Perm() != 0o755 || !bytes.HasPrefix(f.Content, []byte("#!/bin/sh\n")) {
			t.Errorf("%s is no script that can be run: %v", script, f.Mode)
		}
	}
	sums := string(entries["./md5sums"].Content)
	want := fmt.Sprintf("%x  usr/bin/cabrank\n", md5.Sum([]byte("the program")))
	check(t, strings.Contains(sums, want), "no line %q in\n%s", want, sums)
	check(t, !strings.Contains(sums, debianConfig), "the administrator's file has a sum:\n%s", sums)
}

// What is on the host: a program that can be run, units that start that one, the user
// that they name, and a configuration that says nothing of workers yet.
func TestDebianData(t *testing.T) {
	_, entries := readTarGz(t, readAr(t, makeDebian(t, "1.2.3").Content)[2].Content)
	if f := entries["./usr/bin/cabrank"]; f.Mode != 0o755 || string(f.Content) != "the program" {
		t.Errorf("the program is %v, %q", f.Mode, f.Content)
	}
	if f := entries["./usr/bin/"]; f.Mode != fs.ModeDir|0o755 {
		t.Errorf("its folder is %v", f.Mode)
	}
	for name, line := range map[string]string{
		"./usr/lib/systemd/system/cabrank.service": "ExecStart=/usr/bin/cabrank run --config /etc/cabrank/cabrank.yml",
		"./usr/lib/systemd/system/cabrank.socket":  "ListenStream=8080",
		"./usr/lib/sysusers.d/cabrank.conf":        `u cabrank - "Cabrank and its workers" /var/lib/cabrank`,
		"./etc/cabrank/cabrank.yml":                `  #command: [/usr/local/bin/worker, --listen, "{addr}"]`,
		"./usr/share/doc/cabrank/copyright":        "Copyright: 2026 " + authors,
	} {
		text := string(entries[name].Content)
		check(t, strings.Contains("\n"+text, "\n"+line+"\n"), "%s has no line %q:\n%s", name, line, text)
		check(t, !strings.Contains(text, "=/usr/local/") && !strings.Contains(text, "{{"), "%s was not adapted:\n%s", name, text)
	}
}

// Manual pages and licenses are zipped, completion is where the shells of Debian look.
func TestDebianShare(t *testing.T) {
	_, entries := readTarGz(t, readAr(t, makeDebian(t, "1.2.3").Content)[2].Content)
	for name, want := range map[string]string{
		"man/man1/cabrank.1.gz":               ".TH",
		"doc/cabrank/THIRD-PARTY-LICENSES.gz": "theirs",
		"zsh/vendor-completions/_cabrank":     "#compdef",
	} {
		content := entries["./usr/share/"+name].Content
		if strings.HasSuffix(name, ".gz") {
			if !bytes.HasPrefix(content, []byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x02")) {
				t.Errorf("%s is not zipped without a name and a time, and best: % x", name, content[:10])
			}
			content = []byte(unzipped(t, string(content)))
		}
		check(t, string(content) == want, "%s has %q, want %q", name, content, want)
	}
}

func TestDebianIsForLinux(t *testing.T) {
	for _, p := range platforms() {
		r, _ := debianRelease("1.2.3")
		a, err := debian(r, program{platform: p})
		check(t, err == nil && (a.Name != "") == (p.OS == "linux"), "%s: %q, %v", p, a.Name, err)
	}
}

// A tree that lacks a file is told, with its name.
func TestDebianNeedsTheTree(t *testing.T) {
	r, p := debianRelease("1.2.3")
	r.Root = t.TempDir()
	a, err := debian(r, p)
	check(t, err != nil && strings.Contains(err.Error(), "LICENSE"), "%q, %v", a.Name, err)
}

func TestIndented(t *testing.T) {
	got, want := indented("one\n\ntwo\n"), " one\n .\n two"
	check(t, got == want, "%q, want %q", got, want)
}

// A member of an odd size is filled up, and its header has 60 characters.
func TestAr(t *testing.T) {
	at := time.Unix(1234567890, 0)
	got := string(ar([]file{{Name: "odd", Content: []byte("abc")}, {Name: "even", Content: []byte("ab")}}, at))
	want := fmt.Sprint("!<arch>\n",
		"odd             1234567890  0     0     100644  3         `\nabc\n",
		"even            1234567890  0     0     100644  2         `\nab")
	check(t, got == want, "%q\nwant\n%q", got, want)
}

// Nothing that is zipped has a time of its own.
func TestZippedHasNoTime(t *testing.T) {
	content, err := zipped([]byte("text"))
	if err != nil || !bytes.Equal(content[4:8], make([]byte, 4)) {
		t.Errorf("the header is % x (%v)", content[:10], err)
	}
}
