package main

import (
	"bytes"
	"strings"
	"testing"
)

// The help of a narrow terminal keeps its columns.
func TestHelpFitsTheTerminal(t *testing.T) {
	flags := func(width int) (lines []string) {
		var out bytes.Buffer
		root := newRootCommand()
		root.SetOut(&out)
		root.SetArgs([]string{"run", "--help"})
		wrapFlags(root, width)
		if err := root.Execute(); err != nil {
			t.Fatal(err)
		}
		_, after, found := strings.Cut(out.String(), "\nFlags:\n")
		if !found {
			t.Fatalf("no flags in\n%s", out.String())
		}
		return strings.Split(after, "\n")
	}
	narrow, unlimited := flags(80), flags(0)
	if len(narrow) <= len(unlimited) {
		t.Errorf("%d lines with 80 columns, %d without a limit", len(narrow), len(unlimited))
	}
	for _, line := range narrow {
		if len(line) > 80 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
	if width := helpWidth(&bytes.Buffer{}); width != 0 {
		t.Errorf("a buffer is %d columns wide", width)
	}
}
