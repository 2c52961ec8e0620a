package config

import (
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

func unknown(environ []string) []string { return new(Config).unknownVariables(parseEnviron(environ)) }

// A variable that the configuration names is known.
func TestNamedVariablesAreKnown(t *testing.T) {
	c := &Config{}
	c.Auth.Secret, c.Socket.PushToken = "env:CABRANK_JWT", "/run/token"
	lines := c.unknownVariables(map[string]string{"CABRANK_JWT": "x"})
	testkit.Want(t, len(lines) == 0, "%q", lines)
}

// However many there are, and however long, the lines are few and short.
func TestUnknownVariablesAreBounded(t *testing.T) {
	environ := []string{"CABRANK_" + strings.Repeat("A", 100_000) + "\x1b[2J=1"}
	for i := range 300 {
		environ = append(environ, fmt.Sprintf("CABRANK_ZZ%d=1", i))
	}
	got := unknown(environ)
	if len(got) != maxUnknown || len(strings.Join(got, "")) > maxUnknown*200 || strings.Contains(strings.Join(got, ""), "\x1b") {
		t.Errorf("%d lines of %d bytes", len(got), len(strings.Join(got, "")))
	}
	want := "282 more variables that begin with CABRANK_ are unknown and have no effect"
	testkit.Want(t, got[len(got)-1] == want, "last line is %q, want %q", got[len(got)-1], want)
}

// Every variable with the prefix that the program, its examples and its documents name
// has a meaning, so that none of ours is warned of.
func TestOwnVariablesAreKnown(t *testing.T) {
	variable := regexp.MustCompile(`CABRANK_[A-Z][A-Z_]*[A-Z]`)
	made := []string{"CABRANK_A_B", "CABRANK_OUT", "CABRANK_SERVICE_HOST", "CABRANK_TEST"} // in sentences about names
	for _, folder := range []string{"cmd", "internal", "callee", "client", "deploy", "docs", "examples", "packaging", "bench", "scripts"} {
		err := filepath.WalkDir("../../"+folder, func(name string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() && slices.Contains([]string{"node_modules", "testdata", "decisions", "results"}, entry.Name()) {
				return fs.SkipDir
			}
			if err != nil || !entry.Type().IsRegular() || strings.HasSuffix(name, "_test.go") {
				return err
			}
			text, err := os.ReadFile(name)
			for _, found := range variable.FindAllString(string(text), -1) {
				if told := unknown([]string{found + "=1", "CABRANK_WORKER=worker-1"}); len(told) > 0 && !slices.Contains(made, found) {
					t.Errorf("%s: %s", name, told[0])
				}
			}
			return err
		})
		testkit.Must(t, err)
	}
}

// An upstream that is the port of the calls is found whatever it is called; others on
// that port or on this machine are not taken for it.
func TestUpstreamItself(t *testing.T) {
	local := []netip.Addr{netip.MustParseAddr("192.0.2.7")}
	for _, test := range []struct {
		door, upstream string
		itself         bool
	}{
		{":8080", "127.0.0.1:8080", true},
		{":8080", "localhost:8080", true},
		{":8080", "[::1]:8080", true},
		{"[::]:8080", "0.0.0.0:8080", true},
		{":8080", "192.0.2.7:8080", true},
		{"0.0.0.0:8080", "127.0.0.1:8080", true},
		{"localhost:8080", "127.0.0.1:8080", true},
		{"shop.example:8080", "shop.example:8080", true},
		{"192.0.2.7:8080", "192.0.2.7:8080", true},
		{"127.0.0.1:8080", "0.0.0.0:8080", true},
		{":8080", "127.0.0.1:8081", false},
		{":8080", "192.0.2.8:8080", false},
		{":8080", "shop.example:8080", false},
		{"0.0.0.0:8080", "[::1]:8080", false},
		{"127.0.0.1:8080", "192.0.2.7:8080", false},
		{"127.0.0.1:8080", "127.0.0.2:8080", false},
		{":0", "127.0.0.1:8080", false},
		{":8080", "unix:/run/x:8080", false},
	} {
		from := sources(nil)
		from.Flags = map[string]string{"upstream": test.upstream}
		err := mustLoad(t, from).UpstreamItself(test.door, local)
		want := "flag --upstream: upstreams: " + test.upstream + " is cabrank itself, which takes calls on " + test.door + " (listen: default); allowed: addresses of others"
		if (err != nil) != test.itself || err != nil && err.Error() != want {
			t.Errorf("%s, upstream %s: %v", test.door, test.upstream, err)
		}
	}
}
