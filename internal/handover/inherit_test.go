package handover

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

func TestListenedNames(t *testing.T) {
	const pid = 4711
	mine := strconv.Itoa(pid)
	for what, tc := range map[string]struct {
		env    map[string]string
		want   []string
		faulty bool
	}{
		"nothing":        {nil, nil, false},
		"named":          {map[string]string{listenPID: mine, listenFDs: "2", listenNames: "grpc:probes"}, []string{"grpc", "probes"}, false},
		"nameless":       {map[string]string{listenPID: mine, listenFDs: "2"}, []string{"", ""}, false},
		"too few names":  {map[string]string{listenPID: mine, listenFDs: "2", listenNames: "grpc"}, []string{"grpc", ""}, false},
		"too many names": {map[string]string{listenPID: mine, listenFDs: "1", listenNames: "grpc:probes"}, []string{"grpc"}, false},
		"for another":    {map[string]string{listenPID: "1", listenFDs: "2"}, nil, false},
		"no number":      {map[string]string{listenPID: mine, listenFDs: "two"}, nil, true},
		"negative":       {map[string]string{listenPID: mine, listenFDs: "-1"}, nil, true},
		"far too many":   {map[string]string{listenPID: mine, listenFDs: "17"}, nil, true},
	} {
		got, err := listenedNames(tc.env, pid)
		testkit.Want(t, slices.Equal(got, tc.want) && (err != nil) == tc.faulty, "%s: %q, %v", what, got, err)
	}
}

// Neither workers nor a successor get what was meant for this process.
func TestInheritCleansTheEnvironment(t *testing.T) {
	t.Setenv(listenPID, "1")
	t.Setenv(listenFDs, "1")
	t.Setenv(listenNames, "grpc")
	t.Setenv(notifySocket, "/nowhere")
	t.Setenv(watchdogTime, "20000000")
	t.Setenv(watchdogPID, strconv.Itoa(os.Getpid()))
	in, err := Inherit(quiet())
	testkit.Must(t, err)
	for _, entry := range os.Environ() {
		if strings.HasPrefix(entry, "LISTEN_") || strings.HasPrefix(entry, "NOTIFY_") || strings.HasPrefix(entry, "WATCHDOG_") {
			t.Errorf("%s is left for workers", entry)
		}
	}
	for entry, want := range map[string]bool{
		listenPID + "=1": false, listenFDs + "=1": false, listenNames + "=grpc": false,
		notifySocket + "=/nowhere": true, watchdogTime + "=20000000": true,
		watchdogPID + "=" + strconv.Itoa(os.Getpid()): false,
	} {
		testkit.Equal(t, slices.Contains(in.Environ, entry), want, "%s for the successor", entry)
	}
	testkit.Want(t, in.Predecessor == nil && in.Notifier != nil, "predecessor %v, notifier %v", in.Predecessor, in.Notifier)
}

func TestInheritRefusesNonsense(t *testing.T) {
	for _, number := range []string{"x", "-1", "2", "99999"} {
		t.Setenv(upgradeVariable, number)
		_, err := Inherit(quiet())
		testkit.Want(t, err != nil && strings.HasPrefix(err.Error(), upgradeVariable+" is "), "%s=%s: %v", upgradeVariable, number, err)
	}
}

// The units that people copy fit the code: the socket has the name of the
// traffic, and what an upgrade needs of a service manager is there.
func TestUnits(t *testing.T) {
	for file, lines := range map[string][]string{
		"../../deploy/systemd/cabrank.socket":  {"FileDescriptorName=" + Traffic},
		"../../deploy/systemd/cabrank.service": {"Type=notify", "NotifyAccess=main", "KillMode=mixed"},
	} {
		unit := testkit.ReadFile(t, file)
		for _, line := range lines {
			testkit.Want(t, strings.Contains(string(unit), "\n"+line+"\n"), "%s has no line %s", file, line)
		}
	}
}
