package relay

import (
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// sendRaw connects, writes and returns all that comes back.
func sendRaw(t *testing.T, addr, bytes string) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(soon)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, bytes); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(conn)
	if err != nil {
		t.Fatalf("read: %v (after %q)", err, got)
	}
	return string(got)
}

// R22: who speaks something else gets an answer that a person can read, or the
// end of the connection where no answer would be understood.
func TestOtherProtocols(t *testing.T) {
	g := newRig(t)
	for name, c := range map[string]struct{ sent, want string }{
		"HTTP/1, unserved": {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", ""},
		"like the preface": {"PRI * HTTP/2.0\r\n\r\nsm\r\n\r\n", ""},
		"no request line":  {"INVALID CONNECTION PREFACE\r\n\r\n", ""},
		"TLS":              {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", ""},
		"garbage":          {"\x00\x01\x02\x03\xff\xfe", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := sendRaw(t, g.addr, c.sent); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	after := g.caller()
	askHealth(after, 1, checkPath, "")
	after.WantHeaders(1, noEnd)
}

// R22: who says nothing, or not enough, within 5 s is let go, and nothing was
// written to it. Who has greeted may be silent.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		greeted := g.pipeCaller()
		began := time.Now()
		for _, sent := range []string{"", "PRI * HTTP/2"} {
			ours, theirs := net.Pipe()
			g.ServeConn(ours)
			if _, err := io.WriteString(theirs, sent); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { theirs.Close() })
			go func() { // ends with the connection
				got, _ := io.ReadAll(theirs)
				if len(got) > 0 || time.Since(began) < handshake {
					t.Errorf("after %q: got %q after %v", sent, got, time.Since(began))
				}
			}()
		}
		pass(handshake + 10*time.Millisecond)
		g.each(func(st *stand) {
			if len(st.callers) != 1 {
				t.Errorf("%d connections are open, want the one that has greeted", len(st.callers))
			}
		})
		pass(time.Minute)
		greeted.WritePing([8]byte{1})
		greeted.WantPingAck([8]byte{1})
	})
}

// The preface may come in pieces, and calls right behind it.
func TestPrefaceInPieces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		caller := g.pipeCaller()
		caller.Dribble(1)
		askHealth(caller, 1, checkPath, "")
		caller.WantHeaders(1, noEnd)
		caller.WantData(1, noEnd)
		caller.WantHeaders(1, end)
	})
}

// logLines is a log whose lines can be counted while they are written.
type logLines struct {
	mu    sync.Mutex
	lines []string
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, string(p))
	return len(p), nil
}

func (l *logLines) count(text string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// Callers with TLS see no more than the end of their connection, so the log
// says why; once, however many they are.
func TestTLSIsTold(t *testing.T) {
	var log logLines
	g := newRig(t, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	for range 5 {
		sendRaw(t, g.addr, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
	}
	testkit.Eventually(t, soon, "the warning", func() bool { return log.count("TLS") > 0 })
	if n := log.count("TLS"); n != 1 {
		t.Errorf("%d warnings", n)
	}
}
