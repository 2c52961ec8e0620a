package sink

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// noticeOf names the source whose lines are missing.
func noticeOf(name string) func([]byte, int) []byte {
	return func(to []byte, lines int) []byte { return fmt.Appendf(to, "%s dropped %d\n", name, lines) }
}

// A line that is longer than what is kept, as 64 KiB of bytes are that JSON writes as
// six each, is no sign of a reader that stalls: it is written if nothing else waits.
func TestLongLineIsWritten(t *testing.T) {
	reader := testkit.NewGate()
	s := New(reader)
	from := s.Source(noticeOf("source"))
	long := strings.Repeat("x", maxPending+1) + "\n"
	for range 2 {
		fmt.Fprint(from, long)
	}
	reader.Open()
	s.Open()
	s.Close()
	if got := reader.String(); got != long+"source dropped 1\n" {
		t.Errorf("of two lines of %d bytes %d bytes were written, ending with %q", len(long), len(got), got[max(0, len(got)-20):])
	}
}

// A stalled reader blocks nobody and costs bounded memory; what was lost is
// counted where it is missing; another source's share is untouched.
func TestDropsWhatAStalledReaderDoesNotTake(t *testing.T) {
	reader := testkit.NewGate()
	s := New(reader)
	s.Open()
	loud, quiet := s.Source(noticeOf("loud")), s.Source(noticeOf("quiet"))
	const lines = 20_000
	for i := range lines {
		fmt.Fprintf(loud, "%s%d\n", strings.Repeat("x", 90), i)
	}
	fmt.Fprintln(quiet, "still here")
	s.mu.Lock()
	held := loud.pending + loud.writing
	s.mu.Unlock()
	testkit.Want(t, held <= maxPending, "%d bytes are held, at most %d are allowed", held, maxPending)
	reader.Open()
	testkit.Eventually(t, 30*time.Second, "the notice", func() bool { return strings.Contains(reader.String(), "loud dropped") })
	fmt.Fprintln(loud, "after")
	s.Close()

	all := strings.Split(strings.TrimSuffix(reader.String(), "\n"), "\n")
	kept, dropped := 0, 0
	for _, line := range all {
		if strings.HasPrefix(line, "xxx") {
			kept++
		}
		if count, found := strings.CutPrefix(line, "loud dropped "); found {
			n, err := strconv.Atoi(count)
			testkit.Need(t, err == nil, "notice %q: %v", line, err)
			dropped += n
		}
	}
	testkit.Want(t, kept+dropped == lines && dropped != 0 && s.Dropped() == uint64(dropped),
		"%d lines kept, %d dropped (%d counted), want %d in all", kept, dropped, s.Dropped(), lines)
	testkit.Want(t, slices.Contains(all, "still here") && all[len(all)-1] == "after", "the end is %q", all[len(all)-2:])
}

// Close does not wait for a reader that stalls for ever, and writes the last
// lines for one that does not.
func TestClose(t *testing.T) {
	reader := testkit.NewGate()
	t.Cleanup(reader.Open)
	stalled := New(reader)
	stalled.Open()
	fmt.Fprintln(stalled.Source(noticeOf("any")), "never read")
	began := time.Now()
	stalled.Close()
	took := time.Since(began)
	testkit.Want(t, took <= closeLimit+20*time.Second, "Close took %v", took)

	var got bytes.Buffer
	s := New(&got)
	s.Open()
	from := s.Source(noticeOf("any"))
	for range 100 {
		fmt.Fprintln(from, "x")
	}
	s.Close()
	testkit.Want(t, got.String() == strings.Repeat("x\n", 100), "got %q", got.String())
}

// fullDisk takes so many bytes and no more.
type fullDisk struct {
	room int
	bytes.Buffer
}

func (d *fullDisk) Write(p []byte) (int, error) {
	n := min(len(p), d.room)
	d.room -= n
	d.Buffer.Write(p[:n])
	if n < len(p) {
		return n, errors.New("no space left")
	}
	return n, nil
}

// A disk that becomes full within a line, wherever, never glues the next line to what it
// has of that one, and each line that is not there in full is counted.
func TestLinesOnAFullDisk(t *testing.T) {
	const first, line, last = "first\n", "a line\n", "the last\n"
	for room := range 3*len(line) + 2 {
		disk := &fullDisk{room: room}
		s := New(disk)
		give := func(lines string) {
			n, _ := s.writer.Write([]byte(lines))
			s.written([]byte(lines)[n:])
		}
		give(first)
		give(line + line)
		disk.room = 1000
		give(last)
		got := disk.String()
		whole := 0
		for there := range strings.Lines(got) {
			if there == first || there == line {
				whole++
			}
		}
		// A line whose end alone did not fit is completed by the next one's beginning.
		ended := room == len(first)-1 || room == len(first+line)-1 || room == len(first+line+line)-1
		if ended {
			whole--
		}
		testkit.Want(t, strings.HasSuffix("\n"+got, "\n"+last) && !strings.Contains(got, "\n\n") && uint64(whole)+s.Dropped() == 3,
			"room for %d bytes: %q, %d dropped", room, got, s.Dropped())
	}
}

// No test leaves a goroutine behind.
func TestMain(m *testing.M) { testkit.VerifyMain(m) }
