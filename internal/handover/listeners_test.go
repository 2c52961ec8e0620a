package handover

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// given is a socket as a service manager or a predecessor would have made it.
func given(t *testing.T, l *Listeners, s *socket, network, address string) net.Addr {
	t.Helper()
	on, err := net.Listen(network, address)
	testkit.Must(t, err)
	if unixOn, isUnix := on.(*net.UnixListener); isUnix {
		unixOn.SetUnlinkOnClose(false)
	}
	t.Cleanup(func() { on.Close() })
	fd, err := copyOf(on)
	testkit.Must(t, err)
	testkit.Must(t, l.give(s, os.NewFile(uintptr(fd), "given")))
	return on.Addr()
}

var errUnbound = errors.New("would have been bound")

func unbound() (net.Listener, error) { return nil, errUnbound }

func TestOpenTakesWhatIsMeant(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	for what, tc := range map[string]struct {
		socket         socket
		network, at    string
		name, asked    string // asked "ADDR" stands for the address that was bound
		taken, mistake bool
	}{
		"manager, by name":                {socket{name: Traffic, manager: true}, "tcp", "127.0.0.1:0", Traffic, "0.0.0.0:1", true, false},
		"manager, other name of ours":     {socket{name: Probes, manager: true}, "tcp", "127.0.0.1:0", Traffic, "ADDR", false, true},
		"manager, by address":             {socket{name: "cabrank.socket", manager: true}, "tcp", "127.0.0.1:0", Traffic, "ADDR", true, false},
		"manager, nameless":               {socket{manager: true}, "tcp", "127.0.0.1:0", Metrics, "ADDR", true, false},
		"manager, other address":          {socket{name: "cabrank.socket", manager: true}, "tcp", "127.0.0.1:0", Traffic, "127.0.0.1:1", false, true},
		"manager, any port is no address": {socket{name: "cabrank.socket", manager: true}, "tcp", "127.0.0.1:0", Traffic, "127.0.0.1:0", false, true},
		"manager, unix":                   {socket{name: Control, manager: true}, "unix", path + "1", Control, path + "1", true, false},
		"manager, unix for a port":        {socket{name: Traffic, manager: true}, "unix", path + "2", "tcp", "0.0.0.0:1", false, true},
		"before, same words":              {socket{name: Traffic, asked: "host:0"}, "tcp", "127.0.0.1:0", Traffic, "host:0", true, false},
		"before, same address":            {socket{name: Traffic, asked: "127.0.0.1:0"}, "tcp", "127.0.0.1:0", Traffic, "ADDR", true, false},
		"before, other address":           {socket{name: Traffic, asked: "127.0.0.1:0"}, "tcp", "127.0.0.1:0", Traffic, "127.0.0.1:1", false, false},
		"before, other name":              {socket{name: Probes, asked: "127.0.0.1:0"}, "tcp", "127.0.0.1:0", Traffic, "ADDR", false, false},
	} {
		t.Run(what, func(t *testing.T) {
			l := &Listeners{}
			addr := given(t, l, &tc.socket, tc.network, tc.at)
			asked := strings.ReplaceAll(tc.asked, "ADDR", addr.String())
			on, origin, err := l.Open(tc.name, tc.network, asked, unbound)
			taken := origin != Bound
			if taken != tc.taken || !taken && !errors.Is(err, errUnbound) {
				t.Fatalf("taken %t, %v", taken, err)
			}
			if taken {
				on.Close()
			}
			dropped, err := l.Rest()
			testkit.Want(t, (err != nil) == tc.mistake && (len(dropped) > 0) != (tc.taken || tc.mistake), "rest %q, %v", dropped, err)
			testkit.Want(t, err == nil || strings.Contains(err.Error(), addr.String()), "%v does not name %v", err, addr)
		})
	}
}

// What a service manager has made stays its own in the hands of a successor.
func TestOriginSurvivesHandover(t *testing.T) {
	before, after := &Listeners{}, &Listeners{}
	given(t, before, &socket{name: Traffic, manager: true}, "tcp", "127.0.0.1:0")
	first, origin, err := before.Open(Traffic, "tcp", ":1", unbound)
	testkit.Need(t, err == nil && origin == Activated, "%v %v", origin, err)
	defer first.Close()
	notes, descriptors, err := before.notes()
	testkit.Need(t, err == nil && len(notes) == 1, "%+v, %v", notes, err)
	s := &socket{name: notes[0].Name, asked: notes[0].Asked, manager: notes[0].Manager}
	testkit.Must(t, after.give(s, os.NewFile(uintptr(descriptors[0]), "given")))
	second, origin, err := after.Open(Traffic, "tcp", ":2", unbound)
	testkit.Need(t, err == nil && origin == Activated && second.Addr().String() == first.Addr().String(), "%v %v", origin, err)
	second.Close()
}

// What was closed meanwhile is not handed over.
func TestClosedListenerIsNotHandedOver(t *testing.T) {
	l := &Listeners{}
	on, _, err := l.Open(Metrics, "tcp", "127.0.0.1:0", func() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") })
	testkit.Must(t, err)
	on.Close()
	notes, descriptors, err := l.notes()
	testkit.Want(t, err == nil && len(notes)+len(descriptors) == 0, "%+v, %v, %v", notes, descriptors, err)
}

// A connection and a file are told apart from a listener, and from a link.
func TestOnlyWhatIsMeantIsTaken(t *testing.T) {
	conn, _ := testkit.TCPPair(t)
	for want, open := range map[string]func() (*os.File, error){
		"does not listen": conn.(*net.TCPConn).File,
		"is no socket":    func() (*os.File, error) { return os.Open(os.DevNull) },
	} {
		file, err := open()
		testkit.Must(t, err)
		_, err = listenerOf(file)
		testkit.Want(t, err != nil && strings.Contains(err.Error(), want), "got %v, want %s", err, want)
		file, err = open()
		testkit.Must(t, err)
		_, err = newLink(file)
		testkit.Want(t, err != nil, "what %s was taken for a link", want)
	}
}

func TestSameAddress(t *testing.T) {
	tcp := func(address string) net.Addr {
		addr, err := net.ResolveTCPAddr("tcp", address)
		testkit.Must(t, err)
		return addr
	}
	for _, tc := range []struct {
		addr  net.Addr
		asked string
		same  bool
	}{
		{tcp("[::]:80"), ":80", true},
		{tcp("[::]:80"), "0.0.0.0:80", true},
		{tcp("0.0.0.0:80"), "[::]:80", true},
		{tcp("0.0.0.0:80"), ":0", true},
		{tcp("0.0.0.0:80"), ":81", false},
		{tcp("127.0.0.1:80"), ":80", false},
		{tcp("127.0.0.1:80"), "localhost:80", true},
		{tcp("[::1]:80"), "localhost:80", true},
		{tcp("[::ffff:127.0.0.1]:80"), "127.0.0.1:80", true},
		{tcp("127.0.0.1:80"), "somewhere:80", false},
		{tcp("127.0.0.1:80"), "127.0.0.1", false},
		{tcp("127.0.0.1:80"), "127.0.0.1:http", false},
		{&net.UnixAddr{Name: "/a", Net: "unix"}, "/a", true},
		{&net.UnixAddr{Name: "/a", Net: "unix"}, "/b", false},
		{&net.UDPAddr{}, ":0", false},
	} {
		testkit.Equal(t, SameAddress(tc.addr, tc.asked), tc.same, "%v for %s", tc.addr, tc.asked)
	}
}
