package process

import (
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// Lines come out the same however the stream is cut into reads.
func TestSplitterCutsLines(t *testing.T) {
	long := strings.Repeat("x", maxLine)
	for _, test := range []struct {
		stream string
		want   []string
	}{
		{"a\nb\n", []string{"a", "b"}},
		{"a\r\n\r\nb", []string{"a", "", "b"}},
		{"no end", []string{"no end"}},
		{"", nil},
		{long + "\n", []string{long}},
		{long + "y\nz\n", []string{long, "y", "z"}},
		{long + long + "y", []string{long, long, "y"}},
	} {
		for _, step := range []int{1, 7, 1 << 20} {
			var got []string
			s := splitter{line: func(text []byte) { got = append(got, string(text)) }}
			for part := range slices.Chunk([]byte(test.stream), step) {
				s.write(part)
			}
			s.flush()
			testkit.Want(t, slices.Equal(got, test.want),
				"%.10q in steps of %d: got %d lines, want %d", test.stream, step, len(got), len(test.want))
		}
	}
}

// A pipe that somebody holds open is read until its deadline, and what came
// before it counts, half a line too.
func TestLinesEndAtTheirDeadline(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	var got []string
	done := make(chan struct{})
	go func() {
		defer close(done)
		Lines(ours, func(text []byte) { got = append(got, string(text)) })
	}()
	_, err := io.WriteString(theirs, "one\ntw")
	testkit.Must(t, err)
	testkit.Must(t, ours.SetReadDeadline(time.Now()))
	<-done
	want := []string{"one", "tw"}
	testkit.Want(t, slices.Equal(got, want), "got %q, want %q", got, want)
}

// R18: the list of the keeper ends as it was told, whatever else is in it.
func TestKeeperReadsItsList(t *testing.T) {
	got := readGroups(strings.NewReader("add 10\nadd 11\ndel 10\n\nhello\nadd x\ndel 99\nadd 12"))
	testkit.Want(t, len(got) == 2, "groups %v, want 11 and 12", got)
	for _, group := range []Group{11, 12} {
		_, listed := got[group]
		testkit.Want(t, listed, "group %d is missing", group)
	}
}
