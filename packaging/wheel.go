package main

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"io/fs"
	"strings"
)

// pythonPackage is the package that people import: what "python -m cabrank" runs.
//
//go:embed all:python
var pythonPackage embed.FS

// wheel is what pip, uv and pipx install. The program is one of its scripts, so that it
// stands in bin/ as it is: no process of Python is between a shell and Cabrank.
//
// Source: packaging.python.org, "Binary distribution format" and "Core metadata" 2.4.
func wheel(r *release, p program) (artifact, error) {
	name := "cabrank-" + r.inForm("rc")
	files, err := embedded(pythonPackage, "python")
	if err != nil {
		return artifact{}, err
	}
	files = append(files, file{Name: name + ".data/scripts/cabrank", Mode: 0o755, Content: p.Content})
	info, err := wheelInfo(r, p)
	if err != nil {
		return artifact{}, err
	}
	for _, f := range info {
		f.Name = name + ".dist-info/" + f.Name
		files = append(files, f)
	}
	files = append(files, record(name+".dist-info/RECORD", files))
	content, err := zipArchive(files, r.Date)
	return artifact{Name: name + "-py3-none-" + p.Wheel + ".whl", Content: content}, err
}

// wheelInfo is what a wheel says of itself.
func wheelInfo(r *release, p program) ([]file, error) {
	files := r.legal()
	var names []string
	for i := range files {
		names = append(names, files[i].Name)
		files[i].Name = "licenses/" + files[i].Name
	}
	readme, err := r.readme()
	if err != nil {
		return nil, err
	}
	return append(files,
		file{Name: "METADATA", Mode: 0o644, Content: append(metadata(r, names), readme...)},
		file{Name: "WHEEL", Mode: 0o644, Content: wheelTags(p)},
	), nil
}

// metadata is the head of the file METADATA; the README follows it.
func metadata(r *release, licenses []string) []byte {
	lines := []string{
		"Metadata-Version: 2.4",
		"Name: cabrank",
		"Version: " + r.inForm("rc"),
		"Summary: " + summary,
		"Author-email: " + authors + " <" + contact + ">",
		"License-Expression: " + license,
	}
	for _, name := range licenses {
		lines = append(lines, "License-File: "+name)
	}
	lines = append(lines,
		"Project-URL: Homepage, "+homepage,
		"Project-URL: Documentation, "+homepage+"/tree/v"+r.Version+"/docs",
		"Project-URL: Changelog, "+homepage+"/blob/v"+r.Version+"/CHANGELOG.md",
		"Keywords: grpc,websocket,load-balancer,process-manager",
		"Classifier: Environment :: Console",
		"Classifier: Operating System :: MacOS",
		"Classifier: Operating System :: POSIX :: Linux",
		"Classifier: Programming Language :: Python :: 3",
		"Requires-Python: >=3.8",
		"Description-Content-Type: text/markdown",
		"", "",
	)
	return []byte(strings.Join(lines, "\n"))
}

// wheelTags is the file WHEEL: one line for each platform that the name joins.
func wheelTags(p program) []byte {
	const tag = "\nTag: py3-none-"
	return []byte("Wheel-Version: 1.0\nGenerator: cabrank packaging\nRoot-Is-Purelib: false" +
		tag + strings.ReplaceAll(p.Wheel, ".", tag) + "\n")
}

// record lists all files of a wheel with their checksums, and itself without.
func record(name string, files []file) file {
	var lines strings.Builder
	for _, f := range files {
		sum := sha256.Sum256(f.Content)
		fmt.Fprintf(&lines, "%s,sha256=%s,%d\n", f.Name, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.Content))
	}
	fmt.Fprintf(&lines, "%s,,\n", name)
	return file{Name: name, Mode: 0o644, Content: []byte(lines.String())}
}

// embedded returns the files of a folder of this module, named from there. Those in a
// folder bin are programs.
func embedded(from embed.FS, folder string) (files []file, err error) {
	below, err := fs.Sub(from, folder)
	if err != nil {
		return nil, err
	}
	err = fs.WalkDir(below, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(below, name)
		mode := fs.FileMode(0o644)
		if strings.HasPrefix(name, "bin/") {
			mode = 0o755
		}
		files = append(files, file{Name: name, Mode: mode, Content: content})
		return err
	})
	return files, err
}
