package main

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"time"
)

// ruby is what gems have of their own: two commands, a library, and the form of the
// metadata.
//
//go:embed ruby
var ruby embed.FS

// gem is for Ruby: a tar of the metadata, of the files, and of their checksums. Its
// commands become the program that it carries for one platform.
//
// Source: package.rb and specification.rb of RubyGems 3.3.
func gem(r *release, p program) (artifact, error) {
	files, err := gemFiles(r, p)
	if err != nil {
		return artifact{}, err
	}
	metadata, err := gemMetadata(r, p, files)
	if err != nil {
		return artifact{}, err
	}
	if metadata, err = zipped(metadata); err != nil {
		return artifact{}, err
	}
	data, err := tarGz(files, r.Date)
	if err != nil {
		return artifact{}, err
	}
	checksums, err := zipped(gemChecksums(metadata, data))
	if err != nil {
		return artifact{}, err
	}
	content, err := tarball([]file{
		{Name: "metadata.gz", Mode: 0o444, Content: metadata},
		{Name: "data.tar.gz", Mode: 0o444, Content: data},
		{Name: "checksums.yaml.gz", Mode: 0o444, Content: checksums},
	}, r.Date)
	return artifact{Name: "cabrank-" + gemVersion(r) + "-" + p.Gem + ".gem", Content: content}, err
}

func gemVersion(r *release) string { return r.inForm(".rc.") }

// gemFiles are the files that the gem installs, sorted by name.
func gemFiles(r *release, p program) ([]file, error) {
	readme, err := r.readme()
	if err != nil {
		return nil, err
	}
	files := append(r.legal(),
		file{Name: "README.md", Mode: 0o644, Content: readme},
		file{Name: path.Join("libexec", p.Gem, "cabrank"), Mode: 0o755, Content: p.Content},
	)
	for name, mode := range map[string]fs.FileMode{"exe/cabrank": 0o755, "exe/gruf-relay": 0o755, "lib/cabrank.rb": 0o644} {
		content, err := ruby.ReadFile("ruby/" + name)
		if err != nil {
			return nil, err
		}
		files = append(files, file{Name: name, Mode: mode, Content: content})
	}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.Name, b.Name) })
	return files, nil
}

// gemMetadata is the gem's specification in YAML, letter by letter as RubyGems writes it:
// not all that read it know more of YAML than that.
func gemMetadata(r *release, p program, files []file) ([]byte, error) {
	form, err := template.New("metadata.yaml").Funcs(template.FuncMap{"plain": plain}).ParseFS(ruby, "ruby/metadata.yaml")
	if err != nil {
		return nil, err
	}
	values := struct {
		Version, Platform, Authors, Contact, Homepage, Tree, License, Summary, Description string

		Files      []string
		Date       time.Time
		Prerelease bool
	}{
		Version: gemVersion(r), Platform: p.Gem, Date: r.Date, Prerelease: gemVersion(r) != r.Version,
		Authors: authors, Contact: contact, Homepage: homepage, Tree: homepage + "/blob/v" + r.Version, License: license, Summary: summary,
		Description: "  " + strings.ReplaceAll(about, "\n", "\n  "),
	}
	for _, f := range files {
		values.Files = append(values.Files, f.Name)
	}
	var out bytes.Buffer
	err = form.Execute(&out, values)
	return out.Bytes(), err
}

// plain returns text that stands in YAML without quotes and means itself; an error if that
// cannot be said of it.
func plain(text string) (string, error) {
	const form = `^([A-Za-z]|\d+\.\d+\.)[\w./@(),;:-]*( [\w./@(),;-]+)*$`
	words := []string{"true", "false", "yes", "no", "on", "off", "null", "y", "n"}
	if !regexp.MustCompile(form).MatchString(text) || strings.HasSuffix(text, ":") || strings.Contains(text, ": ") ||
		slices.Contains(words, strings.ToLower(text)) {
		return "", fmt.Errorf("%q needs quotes in YAML", text)
	}
	return text, nil
}

// gemChecksums is the file by which RubyGems verifies the two others.
func gemChecksums(metadata, data []byte) []byte {
	return fmt.Appendf(nil, "---\nSHA256:\n  metadata.gz: %x\n  data.tar.gz: %x\nSHA512:\n  metadata.gz: %x\n  data.tar.gz: %x\n",
		sha256.Sum256(metadata), sha256.Sum256(data), sha512.Sum512(metadata), sha512.Sum512(data))
}
