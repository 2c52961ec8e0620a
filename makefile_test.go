package cabrank_test

import (
	"regexp"
	"strings"
	"testing"
)

// target matches a target that people call, with what `make help` says of it.
var target = regexp.MustCompile(`(?m)^([a-z0-9-]+):[^=\n]*?(?:## (.+))?$`)

// `make help` explains every target, and those that documents and people rely
// on are there.
func TestMakeTargetsAreExplained(t *testing.T) {
	explained := map[string]bool{}
	for _, m := range target.FindAllStringSubmatch(read(t, "Makefile"), -1) {
		if m[2] == "" {
			t.Errorf("Makefile: the target %q has no ## text for make help", m[1])
		}
		explained[m[1]] = true
	}
	for name := range strings.FieldsSeq("help build demo test lint test-unit test-real fuzz bench bench-peers bench-queue soak h2spec") {
		if !explained[name] {
			t.Errorf("Makefile: no target %q", name)
		}
	}
}

// Continuous integration runs what everybody can run.
func TestCIRunsMakeTest(t *testing.T) {
	if !strings.Contains(read(t, ".ci/run"), "\nmake test\n") {
		t.Error(".ci/run does not call make test")
	}
}
