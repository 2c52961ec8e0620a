package door

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
)

// Holder is a process that listens on a port.
type Holder struct {
	PID  int
	Name string // as the kernel knows it, at most 15 bytes
}

// String returns "ruby (pid 4711)".
func (h Holder) String() string { return fmt.Sprintf("%s (pid %d)", h.Name, h.PID) }

// maxScanned bounds how many descriptors are looked at in search of a holder:
// a better error line is not worth minutes on a crowded machine.
const maxScanned = 200_000

// PortHolder returns the process that listens on a TCP port of this machine, if
// it can be seen: on Linux, and only if its descriptors may be read.
func PortHolder(port int) (holder Holder, seen bool) {
	return findHolder(os.DirFS("/proc"), port)
}

// findHolder looks through proc, the tree of proc(5), for the process that
// listens on a TCP port. It finds nothing where the descriptors of the process
// may not be read, such as those of another user.
func findHolder(proc fs.FS, port int) (holder Holder, seen bool) {
	sockets := map[string]bool{}
	for _, table := range []string{"self/net/tcp", "self/net/tcp6"} { // also where "net" is hidden
		for _, inode := range listeningInodes(proc, table, port) {
			sockets["socket:["+inode+"]"] = true
		}
	}
	if len(sockets) == 0 {
		return Holder{}, false
	}
	entries, err := fs.ReadDir(proc, ".")
	if err != nil {
		return Holder{}, false
	}
	left := maxScanned
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || left <= 0 {
			continue
		}
		if holdsOne(proc, entry.Name(), sockets, &left) {
			return Holder{PID: pid, Name: nameOf(proc, entry.Name())}, true
		}
	}
	return Holder{}, false
}

// listeningInodes reads a socket table. Shape of a line (proc(5), net/tcp):
// number, local address and remote address as HEX:PORT, state (0A: listening),
// queues, timers, retransmits, user, timeout, inode.
func listeningInodes(proc fs.FS, table string, port int) []string {
	content, err := fs.ReadFile(proc, table)
	if err != nil {
		return nil
	}
	var inodes []string
	suffix := fmt.Sprintf(":%04X", port)
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(line)
		if len(fields) >= 10 && fields[3] == "0A" && strings.HasSuffix(fields[1], suffix) {
			inodes = append(inodes, fields[9])
		}
	}
	return inodes
}

// holdsOne says whether one of a process's descriptors is one of the sockets.
func holdsOne(proc fs.FS, pid string, sockets map[string]bool, left *int) bool {
	directory := path.Join(pid, "fd")
	entries, err := fs.ReadDir(proc, directory)
	if err != nil {
		return false // gone, or not ours to read
	}
	for _, entry := range entries {
		if *left--; *left < 0 {
			return false
		}
		target, err := fs.ReadLink(proc, path.Join(directory, entry.Name()))
		if err == nil && sockets[target] {
			return true
		}
	}
	return false
}

func nameOf(proc fs.FS, pid string) string {
	content, err := fs.ReadFile(proc, path.Join(pid, "comm"))
	name := strings.TrimSpace(string(content))
	if err != nil || name == "" {
		return "a process"
	}
	// Any process may call itself anything: no control characters in our line.
	return strings.Trim(strconv.Quote(name), `"`)
}
