package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// What all packages say of Cabrank.
const (
	summary  = "One small binary between gRPC callers and the workers that serve them"
	homepage = "https://github.com/cabrank/cabrank"
	license  = "MIT"
	authors  = "Cabrank authors"
	contact  = "cabrank@users.noreply.github.com"
)

// about is the description of the packages: a few lines of plain text.
const about = `Cabrank starts N workers of a service, watches and replaces them, and gives
each gRPC call to the first free slot from one bounded, deadline-aware queue.
No call is lost when workers change. It serves callers over gRPC and WebSocket.`

// release is what is packed: sources at one commit, and a program built from them for
// each platform.
// One function fills each part; the packers only read.
type release struct {
	product

	Root    string    // folder of the sources
	Version string    // as in the file VERSION: 1.2.3, or 1.2.3-rc.1
	Commit  string    // twelve digits, with -dirty behind them if the sources are not those of the commit
	Date    time.Time // of the commit: the time of every file in every package

	Here     bool // only the program for this platform is built
	Programs []program
	Go       string   // version of Go that has built them: go1.26.8
	Modules  []module // of others, in any of the programs

	License     []byte // of Cabrank
	ThirdParty  []byte // licenses of Go and of the modules
	Manuals     []file // pages in roff, named as below share/: man/man1/cabrank.1
	Completions []file // scripts of shells, named as below share/
}

// versions matches those that every format can say: SemVer with at most one kind of
// pre-release. Gems, wheels and Debian write the second form in ways of their own.
const versions = `^\d+\.\d+\.\d+(-rc\.\d+)?$`

// readRelease reads what the sources say of themselves. The sources must be a clone:
// the date of the commit is the time of all files.
func readRelease(ctx context.Context, p product, root string) (*release, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(filepath.Join(root, "VERSION"))
	if err != nil {
		return nil, err
	}
	r := &release{product: p, Root: root, Version: strings.TrimSpace(string(content))}
	if !regexp.MustCompile(versions).MatchString(r.Version) {
		return nil, fmt.Errorf("VERSION is %q; it must have the form 1.2.3 or 1.2.3-rc.1", r.Version)
	}
	if r.Commit, err = git(ctx, root, "describe", "--always", "--dirty", "--abbrev=12", "--exclude", "*"); err != nil {
		return nil, err
	}
	date, err := git(ctx, root, "log", "-1", "--format=%cI")
	if err != nil {
		return nil, err
	}
	r.Date, err = time.Parse(time.RFC3339, date)
	r.Date = r.Date.UTC()
	return r, err
}

// git returns what git says of the sources, or its complaint.
func git(ctx context.Context, root string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", root}, args...)...)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		complaint, _, _ := strings.Cut(strings.TrimSpace(said.String()), "\n")
		return "", fmt.Errorf("packages have the date of a commit, so they are made from a clone: git %s: %s", args[0], cmp.Or(complaint, err.Error()))
	}
	return strings.TrimSpace(string(out)), nil
}

// inForm returns the version with its pre-release, if any, behind another mark:
// 1.2.3-rc.1 is 1.2.3.rc.1 for gems (mark ".rc."), 1.2.3rc1 for Python (mark "rc"),
// 1.2.3~rc.1 for Debian (mark "~rc.").
func (r *release) inForm(mark string) string { return strings.Replace(r.Version, "-rc.", mark, 1) }
