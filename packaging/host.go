package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
)

// asker runs a program with arguments and returns what it prints.
type asker func(args ...string) ([]byte, error)

// describe fills what the program says of itself: that of this machine is asked. It gets
// no environment, some of which its help would show.
func (r *release) describe(ctx context.Context) error {
	i := slices.IndexFunc(r.Programs, func(p program) bool { return p.OS == runtime.GOOS && p.Arch == runtime.GOARCH })
	if i < 0 {
		return fmt.Errorf("there is no package for %s/%s, whose program would have to print the manual: use Linux or macOS", runtime.GOOS, runtime.GOARCH)
	}
	folder, err := os.MkdirTemp("", "cabrank-packages-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	path := filepath.Join(folder, r.Name)
	if err := os.WriteFile(path, r.Programs[i].Content, 0o700); err != nil {
		return err
	}
	ask := func(args ...string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, path, args...)
		cmd.Dir, cmd.Env, cmd.Stderr = folder, []string{}, os.Stderr
		out, err := cmd.Output()
		if err != nil {
			err = fmt.Errorf("%s %q: %w", r.Name, args, err)
		}
		return out, err
	}
	return errors.Join(r.readManuals(ask), r.readCompletions(ask))
}

// readCompletions fills r.Completions. The names are those below which each shell looks
// for scripts of programs in /usr/local; Debian has another for zsh.
func (r *release) readCompletions(ask asker) error {
	for _, of := range []struct{ shell, name string }{
		{"bash", "bash-completion/completions/" + r.Name},
		{"fish", "fish/vendor_completions.d/" + r.Name + ".fish"},
		{"zsh", "zsh/site-functions/_" + r.Name},
	} {
		script, err := ask("completion", of.shell)
		if err != nil {
			return err
		}
		r.Completions = append(r.Completions, file{Name: of.name, Mode: 0o644, Content: script})
	}
	return nil
}
