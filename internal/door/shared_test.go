package door

import (
	"errors"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// R17: a shared socket that is left gets no new connection, and those that were
// begun before are all still there.
func TestLeaveSharedPort(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has filters that a user may attach")
	}
	first, err := ListenShared("127.0.0.1:0", "--listen")
	testkit.Must(t, err)
	shared := Shared{first.(*net.TCPListener)}
	defer shared.Close()
	const before = 10
	for range before {
		conn, err := net.Dial("tcp", first.Addr().String())
		testkit.Must(t, err)
		t.Cleanup(func() { conn.Close() })
	}
	if shared.Leave() <= 0 {
		t.Fatal(ignoreNew(shared.TCPListener))
	}
	later := make(chan error, 1)
	go func() { // ends when the second listener answers
		conn, err := net.DialTimeout("tcp", first.Addr().String(), 20*time.Second)
		if err == nil {
			err = conn.Close()
		}
		later <- err
	}()
	for taken := range before + 1 {
		limit := 20 * time.Second
		if taken == before {
			limit = 100 * time.Millisecond
		}
		testkit.Must(t, shared.SetDeadline(time.Now().Add(limit)))
		conn, err := shared.Accept()
		if taken == before {
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("a new connection came: %v", err)
			}
			break
		}
		if err != nil {
			t.Fatalf("after %d of %d: %v", taken, before, err)
		}
		conn.Close()
	}
	second, err := ListenShared(first.Addr().String(), "--listen")
	testkit.Must(t, err)
	defer second.Close()
	shared.Close()
	if err := <-later; err != nil {
		t.Errorf("who came in between: %v", err)
	}
}
