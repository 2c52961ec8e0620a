package testkit

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
)

// module is found in the stack of every goroutine that our code started.
const module = "github.com/cabrank/cabrank/"

// NotAgain begins the words of a failure that no second try of the test may hide: a
// panic or a race of a program that it ran, or what it has left behind.
const NotAgain = "not to be run again: "

// CheckLeaks fails the test when it leaves goroutines of this module behind
// that did not run when CheckLeaks was called. Call it first: cleanups run in
// reverse order, so that it sees what the others have left.
//
// It is not for parallel tests (it would see the goroutines of the others;
// VerifyMain is for them) and not needed in a synctest bubble, which checks
// that itself.
func CheckLeaks(t testing.TB) {
	t.Helper()
	before := goroutines(func(string) bool { return true }) // one that has not begun does not show whose it is
	t.Cleanup(func() {
		t.Helper()
		awaitNone(t, before)
	})
}

// VerifyMain runs the tests of a package and exits with their status, or with
// 1 when goroutines of this module are left at the end. Use it as the body of
// TestMain.
func VerifyMain(m interface{ Run() int }) {
	code := m.Run()
	if code == 0 {
		awaitNone(exitTB{}, nil)
	}
	os.Exit(code)
}

// awaitNone waits until no goroutine of ours is left but those in before.
func awaitNone(t testing.TB, before map[string]string) {
	t.Helper()
	var left map[string]string
	Eventually(stackTB{t, &left}, patience, "goroutines to end", func() bool {
		left = goroutines(ours)
		for id := range before {
			delete(left, id)
		}
		return len(left) == 0
	})
}

// stackTB adds the stacks of what was left to the failure of Eventually.
type stackTB struct {
	testing.TB
	left *map[string]string
}

func (t stackTB) Fatalf(format string, args ...any) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, NotAgain+format, args...)
	for _, stack := range *t.left {
		b.WriteString("\n\n" + stack)
	}
	t.TB.Fatalf("%s", b.String())
}

// exitTB stands for a test after all tests have ended.
type exitTB struct{ testing.TB }

func (exitTB) Helper() {}

func (exitTB) Fatalf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "after all tests: "+format+"\n", args...)
	os.Exit(1)
}

// goroutines returns the stacks of some goroutines by their id, the one that asks left out.
func goroutines(which func(stack string) bool) map[string]string {
	found := map[string]string{}
	for i, stack := range strings.Split(stacks(), "\n\n") {
		id, _, ok := strings.Cut(stack, " [")
		if i > 0 && ok && which(stack) {
			found[id] = stack
		}
	}
	return found
}

// stacks returns the stacks of all goroutines, the asking one first.
func stacks() string {
	for size := 1 << 20; ; size *= 2 {
		buf := make([]byte, size)
		if n := runtime.Stack(buf, true); n < size {
			return strings.TrimSpace(string(buf[:n]))
		}
	}
}

// ours says whether our code runs in a goroutine or has started it. The
// functions of tests run in goroutines that package testing started; the
// goroutine of TestMain is the first of the process.
func ours(stack string) bool {
	return strings.Contains(stack, module) &&
		!strings.Contains(stack, "created by testing.") &&
		!strings.HasPrefix(stack, "goroutine 1 [")
}
