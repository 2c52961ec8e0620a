//go:build soak

package cabrank_test

import (
	"bufio"
	"context"
	"go/ast"
	"maps"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/testkit"
)

// The files and functions that each unary call runs, of all rooms: what somebody has to read
// who wants to know what happens to it.
const (
	mostFilesOfACall     = 74
	mostFunctionsOfACall = 402
)

// A call's way through the house is that of blocks of code that run 200 times more with 200
// more calls.
func TestWayOfACall(t *testing.T) {
	dir := t.TempDir()
	program, worker := filepath.Join(dir, "cabrank"), filepath.Join(dir, "worker")
	build(t, "-cover", "-covermode=count", "-coverpkg=./cmd/cabrank,./internal/...", "-o", program, "./cmd/cabrank")
	build(t, "-o", worker, "./examples/go/worker")
	const first, more = 50, 200
	few, many := blocksOf(t, program, worker, first), blocksOf(t, program, worker, first+more)
	files, functions := map[string]bool{}, map[string]bool{}
	rooms := map[string]int{}
	for at, n := range many {
		if n-few[at] < more {
			continue
		}
		if !files[at.file] {
			files[at.file] = true
			rooms[path.Dir(at.file)]++
		}
		functions[at.file+" "+functionAt(t, at)] = true
	}
	t.Logf("%d files, %d functions; files by room: %v", len(files), len(functions), rooms)
	if len(files) < 30 {
		t.Fatal("the calls were not seen")
	}
	if len(files) > mostFilesOfACall || len(functions) > mostFunctionsOfACall {
		t.Errorf("at most %d files and %d functions are allowed", mostFilesOfACall, mostFunctionsOfACall)
	}
	for _, name := range slices.Sorted(maps.Keys(functions)) {
		t.Log(name)
	}
}

func build(t *testing.T, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", append([]string{"build"}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// block is the beginning of a block of code.
type block struct {
	file string
	line int
}

// blocksOf starts the program, makes n calls one after the other, and returns how often each
// block ran.
func blocksOf(t *testing.T, program, worker string, n int) map[block]int {
	t.Helper()
	covered, text := t.TempDir(), filepath.Join(t.TempDir(), "counts")
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	address := ln.Addr().String()
	testkit.Must(t, ln.Close())
	cmd := exec.Command(program, "run", "--workers", "1", "--listen", address, "--probes", "off", "--metrics", "off", "--control", "off", "--", worker)
	cmd.Env = append(os.Environ(), "GOCOVERDIR="+covered)
	testkit.Must(t, cmd.Start())
	callWork(t, address, n)
	testkit.Must(t, cmd.Process.Signal(syscall.SIGTERM))
	testkit.Must(t, cmd.Wait())
	out, err := exec.CommandContext(t.Context(), "go", "tool", "covdata", "textfmt", "-i="+covered, "-o="+text).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return readCounts(t, text)
}

func callWork(t *testing.T, address string, n int) {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	testkit.Must(t, err)
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range n {
		_, err := workpb.NewWorkClient(conn).Io(ctx, &workpb.IoRequest{}, grpc.WaitForReady(true))
		testkit.Must(t, err)
	}
}

// readCounts reads lines of the form "module/file.go:12.34,15.2 3 250".
func readCounts(t *testing.T, name string) map[block]int {
	t.Helper()
	f, err := os.Open(name)
	testkit.Must(t, err)
	defer f.Close()
	counts := map[block]int{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		file, rest, found := strings.Cut(lines.Text(), ":")
		if !found || strings.HasPrefix(lines.Text(), "mode:") {
			continue
		}
		line, _, _ := strings.Cut(rest, ".")
		at, err := strconv.Atoi(line)
		testkit.Must(t, err)
		n, err := strconv.Atoi(rest[strings.LastIndexByte(rest, ' ')+1:])
		testkit.Must(t, err)
		of := block{strings.TrimPrefix(file, module+"/"), at}
		counts[of] = max(counts[of], n)
	}
	return counts
}

// functionAt is the name of the function that has the block.
func functionAt(t *testing.T, at block) string {
	t.Helper()
	p := tree(t)[path.Dir(at.file)]
	for _, f := range p.code() {
		if f.name != at.file {
			continue
		}
		for _, d := range f.syntax.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || at.line < p.fset.Position(fn.Pos()).Line || at.line > p.fset.Position(fn.End()).Line {
				continue
			}
			if fn.Recv != nil {
				return receiver(fn) + "." + fn.Name.Name
			}
			return fn.Name.Name
		}
	}
	return "?"
}
