package process

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cabrank/cabrank/internal/testkit"
)

func TestParseHexAddr(t *testing.T) {
	for text, want := range map[string]string{
		"0100007F":                         "127.0.0.1",
		"00000000":                         "0.0.0.0",
		"00000000000000000000000001000000": "::1",
		"0000000000000000FFFF00000100007F": "::ffff:127.0.0.1",
	} {
		if got, ok := parseHexAddr(text); !ok || got != netip.MustParseAddr(want) {
			t.Errorf("%s: got %v, %v; want %s", text, got, ok, want)
		}
	}
	for _, bad := range []string{"", "01", "xx00007F"} {
		if got, ok := parseHexAddr(bad); ok {
			t.Errorf("%q: got %v", bad, got)
		}
	}
}

// R19: a listener counts only if it belongs to the group, on whatever address
// the worker made it.
func TestListenerOwners(t *testing.T) {
	group := Group(unix.Getpgrp())
	stranger := Group(1) // the group of process 1 has no listener of ours
	path := filepath.Join(t.TempDir(), "s.sock")
	for _, test := range []struct{ network, listen string }{
		{"tcp", "127.0.0.1:0"}, {"tcp", "0.0.0.0:0"}, {"tcp", "[::]:0"}, {"unix", path},
	} {
		listener, err := net.Listen(test.network, test.listen)
		testkit.Must(t, err)
		address := path
		if tcp, ok := listener.Addr().(*net.TCPAddr); ok {
			address = netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(tcp.Port)).String()
		}
		owners, err := group.Listeners(test.network, address)
		testkit.Want(t, err == nil && slices.Contains(owners, os.Getpid()),
			"%s: owners %v, %v; want %d among them", test.listen, owners, err, os.Getpid())
		if owners, err := stranger.Listeners(test.network, address); !errors.Is(err, ErrStranger) {
			t.Errorf("%s, stranger: owners %v, %v", test.listen, owners, err)
		}
		if got := group.ListensOn(); test.network == "tcp" && !slices.Contains(got, listener.Addr().String()) {
			t.Errorf("%s: the group listens on %v, want %v among them", test.listen, got, listener.Addr())
		}
		listener.Close()
		if owners, err := group.Listeners(test.network, address); err == nil || !strings.Contains(err.Error(), "nothing listens") {
			t.Errorf("%s, closed: owners %v, %v", test.listen, owners, err)
		}
	}
}

// Only an address at which several groups have sockets of their own is shared: not one
// with several sockets of one group, as servers with a pool of processes make them.
func TestSharedAddress(t *testing.T) {
	shared := net.ListenConfig{Control: func(_, _ string, conn syscall.RawConn) error {
		var set error
		err := conn.Control(func(fd uintptr) { set = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) })
		return errors.Join(err, set)
	}}
	address := "127.0.0.1:0"
	for range 2 {
		listener, err := shared.Listen(t.Context(), "tcp", address)
		testkit.Must(t, err)
		t.Cleanup(func() { _ = listener.Close() })
		address = listener.Addr().String()
	}
	own := Group(unix.Getpgrp())
	at, by, mark := SharedAddress([]Group{own, 1}, 0)
	testkit.Want(t, len(by) == 0, "%s is said to be shared by %v", at, by)
	// Nobody else's group listens there; the same one twice stands for two.
	at, by, first := SharedAddress([]Group{own, own}, mark)
	testkit.Want(t, at == address && len(by) == 2, "%s is said to be shared by %v, want %s by two", at, by, address)
	// Nobody is looked into again while nothing has changed.
	if at, by, _ := SharedAddress([]Group{own, own}, first); len(by) > 0 {
		t.Errorf("processes were looked into again: %s is shared by %v", at, by)
	}
}

// R19: the socket that the kernel prefers decides, not any on the same port.
func TestListenPreference(t *testing.T) {
	want := []string{"127.0.0.1", "::ffff:127.0.0.1", "0.0.0.0", "::"}
	for i, addr := range listenPreference(netip.MustParseAddr("127.0.0.1")) {
		testkit.Want(t, addr == netip.MustParseAddr(want[i]), "place %d: %v, want %s", i, addr, want[i])
	}
}
