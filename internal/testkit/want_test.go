package testkit

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// complained is a test of which is asked what it was told, and whether it could go on.
type complained struct {
	testing.TB

	said  string
	ended bool
}

func (c *complained) Helper() {}

func (c *complained) Errorf(format string, args ...any) { c.said = fmt.Sprintf(format, args...) }

func (c *complained) Fatalf(format string, args ...any) {
	c.said, c.ended = fmt.Sprintf(format, args...), true
}

func (c *complained) Fatal(args ...any) { c.said, c.ended = fmt.Sprint(args...), true }

// What holds is passed over in silence; of what does not a test is told in these words.
func TestWants(t *testing.T) {
	wrapped := fmt.Errorf("read: %w", io.EOF)
	missing := filepath.Join(t.TempDir(), "missing")
	for name, c := range map[string]struct {
		good, bad func(t *complained)
		said      string
		ended     bool
	}{
		"want": {
			func(t *complained) { Want(t, true, "%d of %d", 1, 2) },
			func(t *complained) { Want(t, false, "%d of %d", 1, 2) }, "1 of 2", false,
		},
		"need": {
			func(t *complained) { Need(t, true, "%d of %d", 1, 2) },
			func(t *complained) { Need(t, false, "%d of %d", 1, 2) }, "1 of 2", true,
		},
		"equal": {
			func(t *complained) { Equal(t, "a", "a", "call %d", 7) },
			func(t *complained) { Equal(t, "a\n", "a", "call %d", 7) }, "call 7:\ngot  \"a\\n\"\nwant \"a\"", false,
		},
		"equal list": {
			func(t *complained) { EqualList(t, nil, []string{}, "names") },
			func(t *complained) { EqualList(t, []string{"a"}, []string{"a", "b"}, "names") }, "names:\ngot  [\"a\"]\nwant [\"a\" \"b\"]", false,
		},
		"is": {
			func(t *complained) { Is(t, wrapped, io.EOF, "the end") },
			func(t *complained) { Is(t, wrapped, io.ErrUnexpectedEOF, "the end") }, "the end:\ngot  read: EOF\nwant unexpected EOF", false,
		},
		"must": {
			func(t *complained) { Must(t, nil) },
			func(t *complained) { Must(t, errors.New("no")) }, "no", true,
		},
		"read file": {
			func(t *complained) { ReadFile(t, os.Args[0]) },
			func(t *complained) { ReadFile(t, missing) }, "open " + missing + ": no such file or directory", true,
		},
	} {
		var well, ill complained
		c.good(&well)
		c.bad(&ill)
		Want(t, well.said == "", "%s: complains without need: %s", name, well.said)
		Want(t, ill.said == c.said && ill.ended == c.ended, "%s: said %q, ended %t; want %q, %t", name, ill.said, ill.ended, c.said, c.ended)
	}
}

// A value that comes is taken; one that does not is waited for so long.
func TestTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		values, began := make(chan int, 1), time.Now()
		values <- 5
		Equal(t, Take(t, values, time.Minute, "nothing"), 5, "the value")
		var ill complained
		Take(&ill, values, time.Minute, "no %s", "more")
		Want(t, ill.said == "no more" && ill.ended && time.Since(began) == time.Minute, "said %q after %v", ill.said, time.Since(began))
	})
}
