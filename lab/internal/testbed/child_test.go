package testbed

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

func TestTail(t *testing.T) {
	var end output
	for range 3 {
		end.Write([]byte(strings.Repeat("x", tailBytes-1) + "y"))
	}
	got := end.String()
	testkit.Want(t, len(got) == tailBytes && strings.HasSuffix(got, "y"), "tail keeps %d bytes", len(got))
}

// What a process writes is kept in a file, behind what is there, up to a bound.
func TestLogOfAProcess(t *testing.T) {
	name := filepath.Join(t.TempDir(), "arm, worker-1.log")
	for range 2 {
		c, err := Launch(Program{Command: []string{"sh", "-c", "echo said; head -c 2000000 /dev/zero >&2"}, Log: name})
		testkit.Must(t, err)
		how, _ := c.Exit()
		testkit.Want(t, how == "exit status 0", "%v", how)
	}
	text, err := os.ReadFile(name)
	testkit.Want(t, err == nil && len(text) == 2*mostLog && string(text[:5]) == "said\n" && string(text[mostLog:mostLog+5]) == "said\n",
		"%d bytes, %v", len(text), err)
	_, err = Launch(Program{Command: []string{"true"}, Log: filepath.Join(name, "x")})
	testkit.Want(t, err != nil, "a file in a file")
}
