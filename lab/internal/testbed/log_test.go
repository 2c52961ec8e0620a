package testbed

import (
	"os"
	"path/filepath"
	"testing"
)

// What a process writes is kept in a file, behind what is there, up to a bound.
func TestLogOfAProcess(t *testing.T) {
	name := filepath.Join(t.TempDir(), "arm, worker-1.log")
	for range 2 {
		c, err := Launch(Program{Command: []string{"sh", "-c", "echo said; head -c 2000000 /dev/zero >&2"}, Log: name})
		if err != nil {
			t.Fatal(err)
		}
		if how, _ := c.Exit(); how != "exit status 0" {
			t.Error(how)
		}
	}
	text, err := os.ReadFile(name)
	if err != nil || len(text) != 2*mostLog || string(text[:5]) != "said\n" || string(text[mostLog:mostLog+5]) != "said\n" {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if _, err := Launch(Program{Command: []string{"true"}, Log: filepath.Join(name, "x")}); err == nil {
		t.Error("a file in a file")
	}
}
