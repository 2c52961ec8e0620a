package handover

import (
	"bytes"
	"errors"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

func parseFrame(frame []byte) (*message, error) {
	r := bytes.NewReader(frame)
	header := make([]byte, headerSize)
	if _, err := io.ReadFull(r, header); err != nil {
		return nil, err
	}
	length, err := bodyLength(header)
	if err != nil {
		return nil, err
	}
	return readBody(r, length)
}

// The first bytes are the same in every version to come.
func TestFrame(t *testing.T) {
	frame, err := newFrame(&message{Kind: kindHello, Oldest: 1, Newest: 1, Program: "v1", PID: 7, Limit: 70_000})
	testkit.Must(t, err)
	want := "CRHO\x00\x00\x00\x4a" + `{"kind":"hello","oldest":1,"newest":1,"program":"v1","pid":7,"limit_ms":70000}`
	want = want[:7] + string(rune(len(want)-headerSize)) + want[8:]
	testkit.Want(t, string(frame) == want, "got  %q\nwant %q", frame, want)
}

func TestMessagesThatAreRefused(t *testing.T) {
	for what, body := range map[string]string{
		"no JSON":        `kind=hello`,
		"no kind":        `{}`,
		"unknown kind":   `{"kind":"please"}`,
		"wrong type":     `{"kind":"hello","oldest":"one"}`,
		"many listeners": `{"kind":"listeners","sockets":[` + strings.Repeat(`{},`, maxSockets) + `{}]}`,
	} {
		m, err := parseMessage([]byte(body))
		testkit.Want(t, errors.Is(err, errForeign), "%s: %+v, %v", what, m, err)
	}
	for what, header := range map[string]string{"magic": "HTTP\x00\x00\x00\x02", "length": "CRHO\x00\x01\x00\x01"} {
		_, err := parseFrame([]byte(header + "{}"))
		testkit.Want(t, errors.Is(err, errForeign), "%s: %v", what, err)
	}
	_, err := newFrame(&message{Kind: kindFailed, Error: strings.Repeat("x", maxBody)})
	testkit.Want(t, err != nil, "a message longer than what is read was made")
}

// A newer side may say more, as long as it says that an older one may listen.
func TestMessageOfANewerSide(t *testing.T) {
	m, err := parseMessage([]byte(`{"kind":"hello","oldest":1,"newest":5,"color":"blue"}`))
	testkit.Want(t, err == nil && m.speaks() == nil, "%v, %v", err, m.speaks())
	for _, body := range []string{`{"kind":"hello","oldest":2,"newest":5}`, `{"kind":"hello"}`, `{"kind":"ready"}`, `{"kind":"hello","oldest":3,"newest":1}`} {
		if m, err := parseMessage([]byte(body)); err != nil || m.speaks() == nil {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// Texts go to a log and a terminal.
func TestTextsAreHarmless(t *testing.T) {
	m, err := parseMessage([]byte(`{"kind":"failed","error":"a\n\u001b[31mb\u0007` + strings.Repeat("é", maxText) + `"}`))
	testkit.Must(t, err)
	testkit.Want(t, strings.HasPrefix(m.Error, "a [31mbé") && len(m.Error) <= maxText+3, "%d bytes: %.20q", len(m.Error), m.Error)
}

func pair(t *testing.T) (ours, theirs *link) {
	t.Helper()
	ours, file, err := newPair()
	testkit.Must(t, err)
	theirs, err = newLink(file)
	testkit.Must(t, err)
	t.Cleanup(func() { ours.close(); theirs.close() })
	return ours, theirs
}

// Descriptors come with the message that announces them, and no other.
func TestDescriptorsAreCounted(t *testing.T) {
	descriptors := openDescriptors(t)
	ours, theirs := pair(t)
	file, err := os.Open(os.DevNull)
	testkit.Must(t, err)
	defer file.Close()
	fd := int(file.Fd())
	one := []socketNote{{Name: Traffic}}
	for what, send := range map[string]func() error{
		"none announced": func() error { return ours.send(&message{Kind: kindReady}, fd) },
		"too many":       func() error { return ours.send(&message{Kind: kindListeners, Sockets: one}, fd, fd) },
		"too few":        func() error { return ours.send(&message{Kind: kindListeners, Sockets: one}) },
	} {
		testkit.Must(t, send())
		m, files, err := theirs.receive(time.Now().Add(bound))
		testkit.Want(t, errors.Is(err, errForeign), "%s: %+v, %d files, %v", what, m, len(files), err)
	}
	if now := openDescriptors(t); now > descriptors+3 { // the pair and the file
		t.Errorf("%d descriptors open, %d before", now, descriptors)
	}
}

// A frame that comes byte by byte is one message.
func TestSlowWriter(t *testing.T) {
	ours, theirs := pair(t)
	frame, err := newFrame(&message{Kind: kindReady})
	testkit.Must(t, err)
	go func() { // ends with the frame
		for _, b := range frame {
			ours.unix.Write([]byte{b})
		}
	}()
	m, _, err := theirs.receive(time.Now().Add(bound))
	testkit.Want(t, err == nil && m.Kind == kindReady, "%+v, %v", m, err)
	_, _, err = theirs.receive(time.Now().Add(time.Millisecond))
	testkit.Want(t, errors.Is(err, os.ErrDeadlineExceeded), "%v", err)
	ours.close()
	_, _, err = theirs.receive(time.Now().Add(bound))
	testkit.Want(t, errors.Is(err, io.EOF), "%v", err)
}

// Whatever a foreign program writes, reading it ends, stays within bounds and
// gives texts of one line; what is read can be written and read again.
func FuzzFrame(f *testing.F) {
	for _, m := range []message{
		{Kind: kindHello, Oldest: 1, Newest: 2, Program: "v1.2.3", PID: 4711, Limit: 1, Workers: 2},
		{Kind: kindListeners, Sockets: []socketNote{{Name: Control, Asked: "/x", Manager: true}}},
		{Kind: kindFailed, Error: "a\nb"},
	} {
		frame, err := newFrame(&m)
		testkit.Must(f, err)
		f.Add(frame)
	}
	f.Add([]byte("CRHO\x00\x00\x00\x02{}"))
	f.Add([]byte("CRHO\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, frame []byte) {
		m, err := parseFrame(frame)
		if err != nil {
			return
		}
		if strings.ContainsAny(m.Error+m.Note+m.Program, "\n\x1b") || len(m.Error) > maxText+3 {
			t.Errorf("unfit text %q", m.Error)
		}
		again, err := newFrame(m)
		if err != nil {
			return // escapes may make it longer than it was
		}
		second, err := parseFrame(again)
		testkit.Want(t, err == nil && reflect.DeepEqual(m, second), "%+v became %+v, %v", m, second, err)
	})
}
