package door

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// A taken port names its holder, if it can be seen, and the flag to change.
func TestTakenPort(t *testing.T) {
	first, err := Listen("127.0.0.1:0", "--probes")
	testkit.Must(t, err)
	defer first.Close()
	port := first.Addr().(*net.TCPAddr).Port
	_, err = Listen(first.Addr().String(), "--probes")
	testkit.Need(t, errors.Is(err, syscall.EADDRINUSE), "got %v", err)
	by := "another process"
	if runtime.GOOS == "linux" {
		name, readErr := os.ReadFile("/proc/self/comm")
		testkit.Must(t, readErr)
		by = fmt.Sprintf("%s (pid %d)", strings.TrimSpace(string(name)), os.Getpid())
	}
	want := fmt.Sprintf("port %d is taken by %s: end that, or choose another port with --probes", port, by)
	testkit.Want(t, err.Error() == want, "got  %s\nwant %s", err, want)
}

// 0.0.0.0 is IPv4 alone; the empty host is every interface of both families.
func TestIPv4Alone(t *testing.T) {
	if loopback, err := net.Listen("tcp6", "[::1]:0"); err != nil {
		t.Skip("there is no IPv6 here")
	} else {
		loopback.Close()
	}
	for address, both := range map[string]bool{"0.0.0.0:0": false, ":0": true} {
		for name, listen := range map[string]func(string, string) (net.Listener, error){"alone": Listen, "shared": ListenShared} {
			on, err := listen(address, "--listen")
			testkit.Must(t, err)
			port := on.Addr().(*net.TCPAddr).Port
			for host, want := range map[string]bool{"127.0.0.1": true, "::1": both} {
				conn, err := net.Dial("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
				testkit.Want(t, (err == nil) == want, "%s on %q: %s answers: %t, want %t", name, address, host, err == nil, want)
				if err == nil {
					conn.Close()
				}
			}
			on.Close()
		}
	}
}

// A name that has several addresses is listened on at one of them; the others of this
// machine are told.
func TestMissedAddresses(t *testing.T) {
	on, err := Listen("127.0.0.1:0", "--listen")
	testkit.Must(t, err)
	defer on.Close()
	all := []netip.Addr{netip.MustParseAddr("::ffff:127.0.0.1"), netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("::1")}
	want := "[]"
	if loopback, err := net.Listen("tcp6", "[::1]:0"); err == nil {
		loopback.Close()
		want = "[::1]"
	}
	testkit.Equal(t, fmt.Sprint(missed(all, on.Addr())), want, "missed")
	for _, address := range []string{"127.0.0.1:0", ":0", "[::1]:0"} {
		got := Missed(address, on)
		testkit.Want(t, got == nil, "%s: %v", address, got)
	}
}

// Two may share a port if both want to, and only then.
func TestSharedPort(t *testing.T) {
	first, err := ListenShared("127.0.0.1:0", "--listen")
	testkit.Must(t, err)
	defer first.Close()
	second, err := ListenShared(first.Addr().String(), "--listen")
	testkit.Must(t, err)
	defer second.Close()
	if _, err = Listen(first.Addr().String(), "--listen"); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("a third that does not share: %v", err)
	}
}

func TestListenErrorsHelp(t *testing.T) {
	refused := &net.OpError{Op: "listen", Net: "tcp", Err: os.NewSyscallError("bind", syscall.EACCES)}
	for want, err := range map[string]error{
		"not allowed to listen on :80: choose a port from 1024 up with --listen": refused,
		"this machine has no address :80: choose another with --listen":          &net.OpError{Op: "listen", Err: os.NewSyscallError("bind", syscall.EADDRNOTAVAIL)},
		"cannot listen on :80, see --listen: no such host":                       &net.OpError{Op: "listen", Err: errors.New("no such host")},
	} {
		testkit.Equal(t, explain(":80", "--listen", err).Error(), want, "the explanation")
	}
}

const socketTable = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n" +
	"   0: 0100007F:1F90 00000000:0000 01 00000000:00000000 00:00000000 00000000     0        0 111 1 0000000000000000 100 0 0 10 0\n" +
	"   1: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 222 1 0000000000000000 100 0 0 10 0\n"

// procTree has one process that listens on 8080 and one that is connected.
func procTree(table string) fstest.MapFS {
	return fstest.MapFS{
		table:         {Data: []byte(socketTable)},
		"self/comm":   {Data: []byte("none\n")},
		"7/comm":      {Data: []byte("client\n")},
		"7/fd/3":      {Data: []byte("socket:[111]"), Mode: os.ModeSymlink},
		"42/comm":     {Data: []byte("ru\x1bby\n")},
		"42/fd/0":     {Data: []byte("/dev/null"), Mode: os.ModeSymlink},
		"42/fd/5":     {Data: []byte("socket:[222]"), Mode: os.ModeSymlink},
		"uptime":      {Data: []byte("1")},
		"99999/empty": {},
	}
}

func TestFindHolder(t *testing.T) {
	for _, table := range []string{"self/net/tcp", "self/net/tcp6"} {
		holder, seen := findHolder(procTree(table), 8080)
		// A name is shown without its control characters.
		want := `ru\x1bby (pid 42)`
		testkit.Want(t, seen && holder.String() == want, "%s: got %v, seen %v, want %s", table, holder, seen, want)
		if holder, seen := findHolder(procTree(table), 8081); seen {
			t.Errorf("%s: a free port is held by %v", table, holder)
		}
	}
}

func TestHolderThatCannotBeSeen(t *testing.T) {
	hidden := procTree("self/net/tcp")
	delete(hidden, "42/fd/5")
	for name, proc := range map[string]fstest.MapFS{"no proc": {}, "descriptors of another user": hidden} {
		holder, seen := findHolder(proc, 8080)
		testkit.Want(t, !seen, "%s: got %v", name, holder)
	}
}

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
		testkit.Dial(t, first.Addr().String())
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
			testkit.Want(t, errors.Is(err, os.ErrDeadlineExceeded), "a new connection came: %v", err)
			break
		}
		testkit.Need(t, err == nil, "after %d of %d: %v", taken, before, err)
		conn.Close()
	}
	second, err := ListenShared(first.Addr().String(), "--listen")
	testkit.Must(t, err)
	defer second.Close()
	shared.Close()
	err = <-later
	testkit.Want(t, err == nil, "who came in between: %v", err)
}
