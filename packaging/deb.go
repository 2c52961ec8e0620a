package main

import (
	"bytes"
	"compress/gzip"
	"crypto/md5" //nolint:gosec // the sums in a Debian package are MD5: they find accidents, not attacks
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
	"time"
)

// debianConfig is the one file that belongs to the administrator of a host.
const debianConfig = "etc/cabrank/cabrank.yml"

// debian makes the package of Debian and Ubuntu: the program, a service that stays off
// until it has been told what to run, and what people read.
//
// Shape: an ar archive of debian-binary, control.tar.gz and data.tar.gz. Of what dpkg
// unpacks gzip is the one that every version knows and that Go brings.
// Source: deb(5).
func debian(r *release, p program) (artifact, error) {
	if p.Debian == "" {
		return artifact{}, nil
	}
	words, err := newDebianWords(r, p)
	if err != nil {
		return artifact{}, err
	}
	data, err := debianData(r, p, words)
	if err != nil {
		return artifact{}, err
	}
	words.KiB = kibibytes(data)
	control, err := debianControl(r, data, words)
	if err != nil {
		return artifact{}, err
	}
	dataTar, err := tarGz(fromRoot(data), r.Date)
	if err != nil {
		return artifact{}, err
	}
	controlTar, err := tarGz(fromRoot(control), r.Date)
	name := fmt.Sprintf("%s_%s_%s.deb", r.Name, words.Version, p.Debian)
	return artifact{Name: name, Content: ar([]file{
		{Name: "debian-binary", Content: []byte("2.0\n")},
		{Name: "control.tar.gz", Content: controlTar},
		{Name: "data.tar.gz", Content: dataTar},
	}, r.Date)}, err
}

// debianWords is what the files in packaging/debian say. They are templates.
type debianWords struct {
	Name, Version, Architecture, Maintainer, Homepage, Summary string

	About     string // each line behind a blank
	Copyright string // years and holder
	License   string // each line behind a blank, empty ones as a dot
	Date      string // as in mail
	KiB       int    // that the files take, known when they are all there
}

func newDebianWords(r *release, p program) (debianWords, error) {
	terms, err := os.ReadFile(filepath.Join(r.Root, "LICENSE"))
	if err != nil {
		return debianWords{}, err
	}
	_, rest, found := strings.Cut(string(terms), "\nCopyright (c) ")
	if !found {
		return debianWords{}, fmt.Errorf("LICENSE has no line that begins with Copyright (c)")
	}
	holder, rest, _ := strings.Cut(rest, "\n")
	return debianWords{
		Name: r.Name, Version: r.inForm("~rc."), Architecture: p.Debian, Maintainer: authors + " <" + contact + ">",
		Homepage: homepage, Summary: r.Summary, About: indented(r.About),
		Copyright: holder, License: indented(rest), Date: r.Date.Format(time.RFC1123Z),
	}, nil
}

// indented is a text of several lines in the form of a control file.
func indented(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i, line := range lines {
		if line == "" {
			line = "."
		}
		lines[i] = " " + line
	}
	return strings.Join(lines, "\n")
}

// fill reads a file of the tree as a template.
func (words debianWords) fill(r *release, name string) ([]byte, error) {
	text, err := template.New(path.Base(name)).Option("missingkey=error").ParseFiles(filepath.Join(r.Root, name))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = text.Execute(&out, words)
	return out.Bytes(), err
}

// debianPlaces says which file of the tree is where on a host. Those of a name that
// ends with .gz are zipped.
func debianPlaces(r *release) [][2]string {
	docs := "usr/share/doc/" + r.Name + "/"
	places := [][2]string{
		{"CHANGELOG.md", docs + "CHANGELOG.md.gz"},
		{"packaging/debian/changelog", docs + "changelog.gz"},
		{"packaging/debian/copyright", docs + "copyright"},
		{"packaging/debian/lintian-overrides", "usr/share/lintian/overrides/" + r.Name},
	}
	if r.Name != service().Name {
		return places
	}
	return append(places, [][2]string{
		{"deploy/systemd/cabrank.service", "usr/lib/systemd/system/cabrank.service"},
		{"deploy/systemd/cabrank.socket", "usr/lib/systemd/system/cabrank.socket"},
		{"deploy/systemd/cabrank.sysusers", "usr/lib/sysusers.d/cabrank.conf"},
		{"deploy/systemd/cabrank.yml", debianConfig},
		{"examples/cabrank.yml", docs + "examples/cabrank.yml"},
	}...)
}

// debianData is all that is unpacked, without the folders.
func debianData(r *release, p program, words debianWords) ([]file, error) {
	files := []file{{Name: "usr/bin/" + r.Name, Mode: 0o755, Content: p.Content}}
	for _, place := range debianPlaces(r) {
		content, err := debianFile(r, words, place[0])
		if err == nil && strings.HasSuffix(place[1], ".gz") {
			content, err = zippedBest(content)
		}
		if err != nil {
			return nil, err
		}
		files = append(files, file{Name: place[1], Mode: 0o644, Content: content})
	}
	more, err := debianShare(r)
	return append(files, more...), err
}

// zippedBest is content as gzip -9n packs it, which Debian asks of what people read.
// Source: Debian Policy, sections 12.1 and 12.7.
func zippedBest(content []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	err = w.Close()
	return out.Bytes(), err
}

// debianShare is what has no file in the tree: manual pages and the licenses of modules,
// both zipped, and completion, where the zsh of Debian looks for that of packages.
func debianShare(r *release) (files []file, err error) {
	share := slices.Concat(r.Manuals, []file{{Name: "doc/" + r.Name + "/THIRD-PARTY-LICENSES", Mode: 0o644, Content: r.ThirdParty}})
	for _, f := range share {
		f.Name += ".gz"
		if f.Content, err = zippedBest(f.Content); err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	for _, f := range r.Completions {
		f.Name = strings.Replace(f.Name, "zsh/site-functions/", "zsh/vendor-completions/", 1)
		files = append(files, f)
	}
	for i := range files {
		files[i].Name = "usr/share/" + files[i].Name
	}
	return files, nil
}

// debianFile is a file of the tree as it is on a host with the package.
func debianFile(r *release, words debianWords, name string) ([]byte, error) {
	if strings.HasPrefix(name, "packaging/debian/") {
		return words.fill(r, name)
	}
	content, err := os.ReadFile(filepath.Join(r.Root, name))
	// The units in the tree are for who has copied the program below /usr/local.
	return bytes.ReplaceAll(content, []byte("=/usr/local/bin/cabrank "), []byte("=/usr/bin/cabrank ")), err
}

// debianControl is what dpkg reads and runs.
func debianControl(r *release, data []file, words debianWords) ([]file, error) {
	control, err := words.fill(r, "packaging/debian/control")
	if err != nil {
		return nil, err
	}
	files := []file{
		{Name: "control", Mode: 0o644, Content: control},
		{Name: "md5sums", Mode: 0o644, Content: md5sums(data)},
	}
	if r.Name != service().Name { // no service, nothing to configure
		return files, nil
	}
	files = append(files, file{Name: "conffiles", Mode: 0o644, Content: []byte("/" + debianConfig + "\n")})
	for _, name := range []string{"postinst", "prerm", "postrm"} {
		content, err := os.ReadFile(filepath.Join(r.Root, "packaging", "debian", name))
		if err != nil {
			return nil, err
		}
		files = append(files, file{Name: name, Mode: 0o755, Content: content})
	}
	return files, nil
}

// md5sums has a line for each file that nobody is to change.
func md5sums(files []file) []byte {
	var lines []string
	for _, f := range files {
		if f.Name != debianConfig {
			lines = append(lines, fmt.Sprintf("%x  %s\n", md5.Sum(f.Content), f.Name)) //nolint:gosec // see the import
		}
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[32:], b[32:]) })
	return []byte(strings.Join(lines, ""))
}

// kibibytes is how much room files take, each rounded up.
func kibibytes(files []file) (sum int) {
	for _, f := range files {
		sum += (len(f.Content) + 1023) / 1024
	}
	return sum
}

// fromRoot gives files the names that dpkg wants, with all folders above them.
func fromRoot(files []file) []file {
	all := []file{{Name: ".", Mode: fs.ModeDir | 0o755}}
	seen := map[string]bool{".": true}
	for _, f := range files {
		for folder := path.Dir(f.Name); !seen[folder]; folder = path.Dir(folder) {
			seen[folder] = true
			all = append(all, file{Name: "./" + folder, Mode: fs.ModeDir | 0o755})
		}
		f.Name = "./" + f.Name
		all = append(all, f)
	}
	return all
}

// ar is an archive of a few small names.
//
// Shape: a line, then for each member a header of 60 characters and the content, at an
// even offset.
// Source: ar(5), the common part of all its forms.
func ar(members []file, at time.Time) []byte {
	var out bytes.Buffer
	out.WriteString("!<arch>\n")
	for _, m := range members {
		fmt.Fprintf(&out, "%-16s%-12d%-6d%-6d%-8o%-10d`\n", m.Name, at.Unix(), 0, 0, 0o100644, len(m.Content))
		out.Write(m.Content)
		if len(m.Content)%2 == 1 {
			out.WriteByte('\n')
		}
	}
	return out.Bytes()
}
