package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"net/mail"
	"slices"
	"strings"
	"testing"
	"time"
)

// smallRelease is a release whose programs are a few bytes.
func smallRelease() *release {
	r := &release{product: service(), Root: "..", Version: "1.2.3-rc.4", License: []byte("MIT"), ThirdParty: []byte("theirs"), Date: time.Date(2026, 11, 23, 9, 5, 38, 0, time.UTC)}
	for _, p := range platforms() {
		r.Programs = append(r.Programs, program{platform: p, Content: []byte("the program for " + p.String())})
	}
	return r
}

// madeTwice runs a packer twice, holds it to the same bytes, and returns them by name.
func madeTwice(t *testing.T, pack packer) map[string][]byte {
	t.Helper()
	first, err := pack(smallRelease())
	must(t, err)
	second, err := pack(smallRelease())
	must(t, err)
	made := map[string][]byte{}
	for i, a := range first {
		check(t, a.Name == second[i].Name && bytes.Equal(a.Content, second[i].Content), "%s is not the same twice", a.Name)
		made[a.Name] = a.Content
	}
	return made
}

// wheelFiles reads a wheel, and holds its files to the form that all wheels have.
func wheelFiles(t *testing.T, content []byte) map[string]string {
	t.Helper()
	archive, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	must(t, err)
	found := map[string]string{}
	for _, f := range archive.File {
		reader, err := f.Open()
		must(t, err)
		text, err := io.ReadAll(reader)
		check(t, err == nil, "%s: %v", f.Name, err)
		found[f.Name] = string(text)
		mode := fs.FileMode(0o644)
		if strings.Contains(f.Name, ".data/scripts/") {
			mode = 0o755
		}
		check(t, f.Mode() == mode && f.Modified.Equal(smallRelease().Date),
			"%s has mode %v and time %v", f.Name, f.Mode(), f.Modified)
		if f.Flags != 0 { // bit 3: the sizes stand behind the content
			t.Errorf("%s has the flags %x", f.Name, f.Flags)
		}
	}
	return found
}

// A wheel has the program as a script, the package, and what installers read: each platform
// of its name, and each file with its checksum.
func TestWheel(t *testing.T) {
	made := madeTwice(t, forEach(wheel))
	for _, p := range smallRelease().Programs {
		name := "cabrank-1.2.3rc4-py3-none-" + p.Wheel + ".whl"
		found := wheelFiles(t, made[name])
		const info = "cabrank-1.2.3rc4.dist-info/"
		var names []string
		record := fmt.Sprintf("%sRECORD,,\n", info)
		for name, text := range found {
			names = append(names, name)
			if sum := sha256.Sum256([]byte(text)); name != info+"RECORD" {
				line := fmt.Sprintf("%s,sha256=%s,%d\n", name, base64.RawURLEncoding.EncodeToString(sum[:]), len(text))
				check(t, strings.Contains(found[info+"RECORD"], line), "RECORD lacks %s", line)
				record += line
			}
		}
		check(t, len(record) == len(found[info+"RECORD"]), "RECORD has other lines:\n%s", found[info+"RECORD"])
		for _, want := range []string{
			"cabrank/__init__.py", "cabrank/__main__.py", "cabrank/py.typed",
			info + "METADATA", info + "WHEEL", info + "licenses/LICENSE", info + "licenses/" + thirdParty,
		} {
			check(t, slices.Contains(names, want), "%s has no %s", name, want)
		}
		same(t, found["cabrank-1.2.3rc4.data/scripts/cabrank"], string(p.Content), "%s has the program", name)
		for tag := range strings.SplitSeq(p.Wheel, ".") {
			check(t, strings.Contains(found[info+"WHEEL"], "\nTag: py3-none-"+tag+"\n"),
				"WHEEL lacks %s:\n%s", tag, found[info+"WHEEL"])
		}
	}
	check(t, len(made) == len(platforms()), "%d wheels", len(made))
}

// METADATA is a head as that of a mail, and then the README, whose links lead out of it.
func TestWheelMetadata(t *testing.T) {
	made := madeTwice(t, forEach(wheel))
	found := wheelFiles(t, made["cabrank-1.2.3rc4-py3-none-"+platforms()[0].Wheel+".whl"])
	message, err := mail.ReadMessage(strings.NewReader(found["cabrank-1.2.3rc4.dist-info/METADATA"]))
	must(t, err)
	for key, want := range map[string]string{
		"Metadata-Version": "2.4", "Name": "cabrank", "Version": "1.2.3rc4", "Summary": summary,
		"License-Expression": "MIT", "Description-Content-Type": "text/markdown",
	} {
		same(t, message.Header.Get(key), want, "%s", key)
	}
	sameList(t, message.Header["License-File"], []string{"LICENSE", thirdParty}, "License-File")
	body, err := io.ReadAll(message.Body)
	check(t, err == nil && bytes.HasPrefix(body, []byte("# Cabrank\n")) && !bytes.Contains(body, []byte("](docs/")),
		"the description is (%v):\n%.2000s", err, body)
}

// What a package needs and the tree does not have is an error, not a smaller package.
func TestMissingFiles(t *testing.T) {
	r := smallRelease()
	r.Root = t.TempDir()
	for kind, pack := range map[string]packer{"wheel": forEach(wheel), "npm": npm} {
		_, err := pack(r)
		check(t, err != nil && strings.Contains(err.Error(), "README.md"), "%s without README.md: %v", kind, err)
	}
}

func TestLinked(t *testing.T) {
	for text, want := range map[string]string{
		"[a](docs/x.md#part) [b](LICENSE)": "[a](at:/docs/x.md#part) [b](at:/LICENSE)",
		"![p](./img/y.png)":                "![p](at:/img/y.png)",
		"[c](https://z/y) [d](#here)":      "[c](https://z/y) [d](#here)",
		"[e](mailto:a@b) (f)":              "[e](mailto:a@b) (f)",
	} {
		got := linked([]byte(text), "at:")
		check(t, string(got) == want, "%s became %s, want %s", text, got, want)
	}
}
