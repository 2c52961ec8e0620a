package cabrank_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/config"
	"github.com/cabrank/cabrank/internal/testkit"
)

// ceilings are what the house may be at most. A change may lower one, and has to when
// it has made something smaller by more than a fiftieth; none is raised but by what the
// text of an issue names, in a commit of its own. `go test -run TestHouse -v .` prints
// the table as it is now.
var ceilings = map[string]int{
	programBytes:                         17_949_000,
	"configuration keys":                 70,
	"lines of README.md":                 138,
	"lines of code, bench":               416,
	"lines of code, callee":              1_705,
	"lines of code, client":              2_302,
	"lines of code, cmd/cabrank":         3_091,
	"lines of code, examples":            2_664,
	"lines of code, internal/accesslog":  274,
	"lines of code, internal/admin":      2_389,
	"lines of code, internal/auth":       796,
	"lines of code, internal/broker":     3_025,
	"lines of code, internal/callers":    803,
	"lines of code, internal/cgroup":     530,
	"lines of code, internal/cli":        494,
	"lines of code, lab":                 18_465,
	"lines of code, internal/config":     3_440,
	"lines of code, internal/demo":       449,
	"lines of code, internal/discover":   2_201,
	"lines of code, internal/doctor":     704,
	"lines of code, internal/door":       726,
	"lines of code, internal/grpcwire":   619,
	"lines of code, internal/h2":         4_395,
	"lines of code, internal/handover":   1_496,
	"lines of code, internal/health":     1_133,
	"lines of code, internal/list":       65,
	"lines of code, internal/methods":    754,
	"lines of code, internal/page":       191,
	"lines of code, internal/process":    1_459,
	"lines of code, internal/push":       840,
	"lines of code, internal/rank":       4_887,
	"lines of code, internal/ranksim":    1_664,
	"lines of code, internal/redislink":  606,
	"lines of code, internal/relay":      7_995,
	"lines of code, internal/scale":      989,
	"lines of code, internal/scalesim":   304,
	"lines of code, internal/schema":     1_009,
	"lines of code, internal/scrape":     2_822,
	"lines of code, internal/service":    3_912,
	"lines of code, internal/shard":      2_087,
	"lines of code, internal/sink":       191,
	"lines of code, internal/socket":     5_477,
	"lines of code, internal/stats":      648,
	"lines of code, internal/strictyaml": 633,
	"lines of code, internal/certs":      461,
	"lines of code, internal/spelling":   80,
	"lines of code, internal/watch":      209,
	"lines of code, internal/web":        2_270,
	"lines of code, internal/webdoors":   264,
	"lines of code, internal/worker":     4_498,
	"lines of code, packaging":           2_271,
	"lines of code, proto":               66,
	"lines of code, scripts":             478,
	"lines of docs":                      11_645,
	"lines of tests":                     104_563,
	"methods of call and attempt":        148,
	"lines of code, internal/head":       647,
	"lines of code, internal/trace":      738,
}

// programBytes is of bin/cabrank, which TestProgramIsLean weighs where it is built:
// people copy it into their images, packages for four platforms carry it.
const programBytes = "bytes of bin/cabrank"

// room names what a source file counts in: lines of code in a room of the house, the
// first folder below internal, or lines of tests with all that only they need.
func room(name string) string {
	part := strings.Split(name, "/")
	switch {
	case part[0] == "lab" && !strings.HasSuffix(name, "_test.go") && !slices.Contains(part, "test") && !slices.Contains(part, "testdata"), labs(name):
		return "lines of code, lab"
	case strings.HasSuffix(name, "_test.go"), slices.Contains(part, "test"), slices.Contains(part, "testdata"), strings.HasPrefix(name, "internal/testkit/"):
		return "lines of tests"
	case part[0] == "internal":
		return "lines of code, internal/" + part[1]
	case part[0] == "cmd":
		return "lines of code, cmd/" + part[1]
	case len(part) > 1:
		return "lines of code, " + part[0]
	}
	return "lines of code, here"
}

// labs tells whether a file is the lab's though it stands elsewhere: tests of the product
// have it, too.
func labs(name string) bool {
	return slices.ContainsFunc([]string{"alarm", "ports"}, func(of string) bool {
		return strings.HasPrefix(name, "internal/testkit/"+of+"/") && !strings.HasSuffix(name, "_test.go")
	})
}

// written tells which files people write and count as code.
func written(name string, text []byte) bool {
	switch filepath.Ext(name) {
	case ".go", ".py", ".rb", ".js", ".ts", ".sh", ".txtar":
		return !strings.Contains(name, "_pb") && !bytes.Contains(text[:min(len(text), 400)], []byte("DO NOT EDIT"))
	}
	return false
}

// measure counts everything in the house.
func measure(t *testing.T) map[string]int {
	t.Helper()
	now := map[string]int{"configuration keys": len(config.Keys())}
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (strings.HasPrefix(entry.Name(), ".") || slices.Contains([]string{"node_modules", "bin", "dist", "tools"}, entry.Name()) || strings.HasSuffix(name, "testdata/fuzz")):
			return fs.SkipDir
		case !entry.Type().IsRegular():
			return nil
		}
		name = filepath.ToSlash(name)
		text, err := os.ReadFile(name)
		lines := bytes.Count(text, []byte("\n"))
		switch {
		case name == "README.md":
			now["lines of README.md"] += lines
		case strings.HasPrefix(name, "docs/") && strings.HasSuffix(name, ".md"):
			now["lines of docs"] += lines
		case written(name, text):
			now[room(name)] += lines
		}
		return err
	})
	testkit.Must(t, err)
	for _, f := range tree(t)["internal/relay"].code() {
		for _, d := range f.syntax.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil && slices.Contains([]string{"call", "attempt"}, receiver(fn)) {
				now["methods of call and attempt"]++
			}
		}
	}
	return now
}

// receiver is the name of a method's type.
func receiver(fn *ast.FuncDecl) string {
	of := fn.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	if name, ok := of.(*ast.Ident); ok {
		return name.Name
	}
	return ""
}

// The house does not grow. A room that is new gets a ceiling, one that is gone has none.
func TestHouse(t *testing.T) {
	now := measure(t)
	for _, what := range slices.Sorted(maps.Keys(now)) {
		t.Logf("%q: %s,", what, grouped(now[what]))
		holdCeiling(t, what, now[what])
	}
	for what := range ceilings {
		if _, ok := now[what]; !ok && what != programBytes {
			t.Errorf("ceilings of house_test.go: %q is gone, remove its line", what)
		}
	}
}

// holdCeiling fails with the line that the table would need.
func holdCeiling(t *testing.T, what string, now int) {
	t.Helper()
	most, ok := ceilings[what]
	switch line := fmt.Sprintf("%q: %s,", what, grouped(now)); {
	case !ok:
		t.Errorf("ceilings of house_test.go: new, add %s", line)
	case now > most:
		t.Errorf("%s is %d, at most %d are allowed (house_test.go)", what, now, most)
	case now < most-max(most/50, 10):
		t.Errorf("%s is %d and was %d: lower the ceiling in house_test.go to %s", what, now, most, line)
	}
}

// grouped writes a number as Go does.
func grouped(n int) string {
	text := fmt.Sprint(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "_" + text[at:]
	}
	return text
}
