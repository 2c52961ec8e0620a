package harness

import (
	"fmt"
	"os"
	"time"
)

// BootsSuffix is behind the path of a ledger: the starts of processes have a
// file of their own, which stays short.
const BootsSuffix = ".boots"

// Kinds of entries in a ledger.
const (
	EntryBoot  = "boot"  // of a process; what is its worker's name
	EntryStart = "start" // of a call; what is its id
	EntryEnd   = "end"   // of a call, before the answer leaves
)

// openLedger opens a ledger for entries of calls, and enters the start of this process.
func openLedger(path, worker string) (calls *os.File, err error) {
	const mode = os.O_APPEND | os.O_CREATE | os.O_WRONLY
	boots, err := os.OpenFile(path+BootsSuffix, mode, 0o600)
	if err != nil {
		return nil, err
	}
	defer boots.Close()
	if calls, err = os.OpenFile(path, mode, 0o600); err != nil {
		return nil, err
	}
	return calls, enter(boots, EntryBoot, worker)
}

// enter writes one entry: kind, pid, nanoseconds since 1970, what. One write of
// less than a page to a file opened for appending is whole, also beside those of
// other processes, and it is in the file when the process is killed after it.
func enter(ledger *os.File, kind, what string) error {
	_, err := fmt.Fprintf(ledger, "%s %d %d %s\n", kind, os.Getpid(), time.Now().UnixNano(), what)
	return err
}
