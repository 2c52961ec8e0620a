package main

import (
	"bytes"
	"embed"
	"encoding/json"
	"strings"
)

// npmLauncher is the package "cabrank" but for its package.json: a command and a module,
// both of which find the program.
//
//go:embed npm
var npmLauncher embed.FS

// packageJSON is the file of that name, its keys in the order in which people read them.
//
// Source: docs of the npm command line, "package.json".
type packageJSON struct {
	Name        string     `json:"name"`
	Version     string     `json:"version"`
	Description string     `json:"description"`
	Keywords    []string   `json:"keywords,omitempty"`
	Homepage    string     `json:"homepage"`
	Repository  repository `json:"repository"`
	License     string     `json:"license"`
	Author      string     `json:"author"`
	Type        string     `json:"type,omitempty"`
	Main        string     `json:"main,omitempty"`
	Types       string     `json:"types,omitempty"`

	Bin       map[string]string `json:"bin,omitempty"`
	Engines   map[string]string `json:"engines,omitempty"`
	Optional  map[string]string `json:"optionalDependencies,omitempty"`
	OS        []string          `json:"os,omitempty"`
	CPU       []string          `json:"cpu,omitempty"`
	Unplugged bool              `json:"preferUnplugged,omitempty"` // Yarn unpacks it: a program does not run from a zip

	Publish map[string]string `json:"publishConfig"`
}

type repository struct {
	Type string `json:"type"`
	URL  string `json:"url"`
}

// npm is the package "cabrank", which has no program: each platform's is a package of its
// own, of which npm installs the one that fits.
func npm(r *release) ([]artifact, error) {
	about := describe(r, "cabrank", summary)
	about.Keywords = []string{"grpc", "websocket", "load-balancer", "process-manager"}
	about.Type, about.Main, about.Types = "commonjs", "index.js", "index.d.ts"
	about.Bin = map[string]string{"cabrank": "bin/cabrank"}
	about.Engines = map[string]string{"node": ">=18"}
	about.Optional = map[string]string{}
	for _, p := range platforms() {
		about.Optional[npmName(p)] = r.Version
	}
	files, err := embedded(npmLauncher, "npm")
	if err != nil {
		return nil, err
	}
	readme, err := r.readme()
	if err != nil {
		return nil, err
	}
	one, err := npmPackage(r, about, append(files, file{Name: "README.md", Mode: 0o644, Content: readme}))
	return []artifact{one}, err
}

// npmProgram is the package of a platform.
func npmProgram(r *release, p program) (artifact, error) {
	about := describe(r, npmName(p.platform), "The program of the package cabrank for "+p.NPMOS+" on "+p.NPMArch)
	about.OS, about.CPU, about.Unplugged = []string{p.NPMOS}, []string{p.NPMArch}, true
	return npmPackage(r, about, []file{
		{Name: "bin/cabrank", Mode: 0o755, Content: p.Content},
		{Name: "README.md", Mode: 0o644, Content: []byte("# " + about.Name + "\n\n" + about.Description + ", which installs it.\n")},
	})
}

func npmName(p platform) string { return "@cabrank/" + p.NPMOS + "-" + p.NPMArch }

// describe is what all packages say of themselves.
func describe(r *release, name, description string) packageJSON {
	return packageJSON{
		Name: name, Version: r.Version, Description: description,
		Homepage: homepage, Repository: repository{"git", "git+" + homepage + ".git"},
		License: license, Author: authors + " <" + contact + ">",
		Publish: map[string]string{"access": "public"}, // else those with a scope are private
	}
}

// npmPackage packs files with package.json and the licenses, as "npm pack" does: all of it
// is below the folder "package".
func npmPackage(r *release, about packageJSON, files []file) (artifact, error) {
	var manifest bytes.Buffer
	encoder := json.NewEncoder(&manifest)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(about); err != nil {
		return artifact{}, err
	}
	files = append(append(files, r.legal()...), file{Name: "package.json", Mode: 0o644, Content: manifest.Bytes()})
	for i := range files {
		files[i].Name = "package/" + files[i].Name
	}
	content, err := tarGz(files, r.Date)
	name := strings.NewReplacer("@", "", "/", "-").Replace(about.Name)
	return artifact{Name: name + "-" + r.Version + ".tgz", Content: content}, err
}
