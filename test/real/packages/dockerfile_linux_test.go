//go:build real || soak

package packages_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// instruction is one of a Dockerfile: its name in capitals, and what stands behind it.
type instruction struct{ name, args string }

// readDockerfile reads the instructions: comments are left out, continued lines joined.
func readDockerfile(content string) []instruction {
	var (
		all  []instruction
		line string
	)
	for next := range strings.Lines(content) {
		next = strings.TrimSpace(next)
		if next == "" || strings.HasPrefix(next, "#") {
			continue
		}
		more, continues := strings.CutSuffix(next, `\`)
		line += more
		if continues {
			continue
		}
		name, args, _ := strings.Cut(line, " ")
		all = append(all, instruction{strings.ToUpper(name), strings.TrimSpace(args)})
		line = ""
	}
	return all
}

// image is what the stand-in of docker knows of one, by the names that docker has in
// images. A stage of a Dockerfile is one, too.
type image struct {
	Layers     []string `json:"Layers"` // folders, the uppermost first
	Env        []string `json:"Env"`
	WorkingDir string   `json:"WorkingDir"`
	User       string   `json:"User"`
	Entrypoint []string `json:"Entrypoint"`
	Cmd        []string `json:"Cmd"`
}

// build is a Dockerfile on its way to be an image.
type build struct {
	context string // folder
	stages  map[string]*image
	now     *image
	root    string // where the layers of now are mounted; what is written is in the first
}

// do follows one instruction. The error says what the stand-in cannot do.
func (b *build) do(i instruction) error {
	if b.now == nil && i.name != "FROM" {
		return fmt.Errorf("the first instruction is %s", i.name)
	}
	switch i.name {
	case "FROM":
		return b.from(i.args)
	case "COPY":
		return b.copy(i.args)
	case "RUN":
		return b.run(shellForm(i.args))
	case "WORKDIR":
		b.now.WorkingDir = b.path(i.args)
		return os.MkdirAll(filepath.Join(b.root, b.now.WorkingDir), 0o755)
	case "ENV":
		for _, m := range regexp.MustCompile(`(\w+)=("[^"]*"|\S*)`).FindAllStringSubmatch(i.args, -1) {
			b.now.Env = append(b.now.Env, m[1]+"="+strings.Trim(m[2], `"`))
		}
	case "USER":
		b.now.User = i.args
	case "ENTRYPOINT":
		b.now.Entrypoint, b.now.Cmd = shellForm(i.args), nil
	case "CMD":
		b.now.Cmd = shellForm(i.args)
	case "EXPOSE", "LABEL":
	default:
		return fmt.Errorf("%s is not an instruction that this stand-in knows", i.name)
	}
	return nil
}

// shellForm is a command: a list in JSON, or words for a shell.
func shellForm(args string) []string {
	var list []string
	if json.Unmarshal([]byte(args), &list) == nil {
		return list
	}
	return []string{"/bin/sh", "-c", args}
}

// from begins a stage: on an image or a stage that is there, on nothing, or on what
// stands in for the image of a language.
func (b *build) from(args string) error {
	words := slices.DeleteFunc(strings.Fields(args), func(w string) bool { return strings.HasPrefix(w, "--") })
	name := words[0]
	base := b.stages[name]
	if base == nil {
		base = readImage(name)
	}
	if base == nil && name != "scratch" {
		base = &image{Layers: []string{hostRoot}, Env: environment(standardPath)}
	}
	b.now = &image{}
	if base != nil {
		*b.now = *base
	}
	layer, err := os.MkdirTemp(filepath.Join(state, "layers"), "")
	if err != nil {
		return err
	}
	if err := os.Chmod(layer, 0o755); err != nil {
		return err
	}
	b.root = layer + ".root"
	if err := mountLayers(b.root, b.now.Layers, layer); err != nil {
		return err
	}
	b.now.Layers = append([]string{layer}, b.now.Layers...)
	if len(words) == 3 && strings.EqualFold(words[1], "AS") {
		b.stages[words[2]] = b.now
	}
	if slices.Equal(b.now.Layers[1:], []string{hostRoot}) {
		return b.furnish(name)
	}
	return nil
}

// furnish makes of a copy of this machine what the image of a language is: its tools are
// first in the $PATH, and it has no user but those of Debian.
func (b *build) furnish(name string) error {
	python, err := os.Readlink(pythonLink)
	if err != nil {
		return err
	}
	if err := enterable(b.root, filepath.Dir(python)); err != nil {
		return err
	}
	if !strings.HasPrefix(name, "python") {
		return nil
	}
	return b.run([]string{"/bin/sh", "-ec", python + ` -m venv --without-pip /usr/local
printf '#!/bin/sh\nexec /usr/local/bin/python -m pip "$@"\n' >/usr/local/bin/pip
chmod 755 /usr/local/bin/pip`})
}

func (b *build) run(command []string) error {
	c := container{Root: b.root, Image: *b.now, Command: command}
	cmd, err := c.command()
	if err != nil {
		return err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = nil, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%q: %w", command, err)
	}
	return nil
}

// path is one of the image that an instruction names.
func (b *build) path(name string) string {
	if !filepath.IsAbs(name) {
		name = "/" + b.now.WorkingDir + "/" + name
	}
	return filepath.Clean(name)
}

// copy follows COPY: from the folder of the build, a stage or an image.
func (b *build) copy(args string) error {
	var from, owner string
	words := strings.Fields(args)
	for ; strings.HasPrefix(words[0], "--"); words = words[1:] {
		flag, value, _ := strings.Cut(words[0], "=")
		switch flag {
		case "--from":
			from = value
		case "--chown":
			owner = value
		default:
			return fmt.Errorf("%s is not a flag that this stand-in knows", flag)
		}
	}
	patterns, last := words[:len(words)-1], words[len(words)-1]
	target := b.path(last)
	if strings.HasSuffix(last, "/") || len(patterns) > 1 {
		target += "/"
	}
	if from == "" {
		return b.copyAll(b.context, patterns, target, owner)
	}
	source := b.stages[from]
	if source == nil {
		source = readImage(from)
	}
	if source == nil {
		return fmt.Errorf("no image or stage %q", from)
	}
	root := filepath.Join(state, "copied")
	if err := mountLayers(root, source.Layers, ""); err != nil {
		return err
	}
	defer unmount(root)
	return b.copyAll(root, patterns, target, owner)
}

// copyAll copies what the patterns match to a path of the image: into it, if it ends
// with a slash; the content of folders, as docker does.
func (b *build) copyAll(root string, patterns []string, target, owner string) error {
	for _, pattern := range patterns {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(found) == 0 {
			return fmt.Errorf("COPY %s: nothing there (%w)", pattern, err)
		}
		for _, source := range found {
			to := b.root + target
			script := `mkdir -p "$(dirname "$2")"; [ ! -d "$2" ] || set -- "$1" "$2/$(basename "$1")"; cp -a --no-preserve=ownership "$1" "$2"`
			if info, err := os.Stat(source); err == nil && info.IsDir() {
				script = `mkdir -p "$2"; cp -a --no-preserve=ownership "$1/." "$2"`
			} else if strings.HasSuffix(target, "/") {
				script = `mkdir -p "$2"; cp -a --no-preserve=ownership "$1" "$2"`
			}
			if owner != "" {
				script += "; chown -R " + owner + ` "$2"`
			}
			if err := shell(script, source, to); err != nil {
				return err
			}
		}
	}
	return nil
}
