package main

import (
	"os"
	"path"
	"path/filepath"
	"slices"
)

// systemd lists what has Cabrank run as a service of a host: its port, and a configuration
// to begin with. The user is made by hand.
func systemd() []string {
	return []string{"deploy/systemd/cabrank.service", "deploy/systemd/cabrank.socket", "deploy/systemd/cabrank.yml"}
}

// archive is for hosts without a package manager that this file knows: a folder with the
// program and what belongs to it. Its share/ can be copied to /usr/local/share.
func archive(r *release, p program) (artifact, error) {
	folder := r.Name + "-" + r.Version + "-" + p.String()
	readme, err := r.readme()
	if err != nil {
		return artifact{}, err
	}
	files := append(r.legal(),
		file{Name: r.Name, Mode: 0o755, Content: p.Content}, file{Name: "README.md", Mode: 0o644, Content: readme})
	more := []string{"CHANGELOG.md"}
	if r.Name == service().Name {
		more = append(more, "examples/cabrank.yml")
		if p.OS == "linux" {
			more = append(more, systemd()...)
		}
	}
	for _, name := range more {
		content, err := os.ReadFile(filepath.Join(r.Root, name))
		if err != nil {
			return artifact{}, err
		}
		files = append(files, file{Name: name, Mode: 0o644, Content: content})
	}
	for _, f := range slices.Concat(r.Manuals, r.Completions) {
		f.Name = path.Join("share", f.Name)
		files = append(files, f)
	}
	for i := range files {
		files[i].Name = path.Join(folder, files[i].Name)
	}
	content, err := tarGz(files, r.Date)
	return artifact{Name: folder + ".tar.gz", Content: content}, err
}
