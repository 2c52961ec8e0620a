package process

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
)

// netTables is the folder with the tables of sockets. /proc/net leads there, but is
// hidden where /proc shows processes only (subset=pid).
const netTables = "/proc/self/net/"

// ErrStranger means that a process outside the group listens on its address.
var ErrStranger = errors.New("a process outside the worker's group listens on its address")

// ErrBlind means that the system does not show which process listens where.
var ErrBlind = errors.New("the tables of sockets in " + netTables + " cannot be read")

// Listeners returns the processes of the group that have the socket open which a
// connection to address would reach. The error says why it cannot: nothing listens, or
// a stranger does, alone or beside the group (ErrStranger); a stranger must never get
// calls (R19).
//
// Where the kernel does not let cabrank look into the processes (a worker that changed
// its user, or is ending), the listener is taken to be the group's and the result is
// empty. The error is ErrBlind where the tables of sockets cannot be read at all.
func (g Group) Listeners(network, address string) ([]int, error) {
	inodes, err := listeningInodes(network, address)
	if err != nil {
		return nil, err
	}
	if len(inodes) == 0 {
		return nil, fmt.Errorf("nothing listens on %s", address)
	}
	owners, hidden := socketHolders(g.Members(), inodes)
	hidden = hidden || isUnseen(int(g)) || isEnding(int(g))
	for _, pids := range owners {
		if len(pids) == 0 && !hidden {
			return nil, fmt.Errorf("%w: %s", ErrStranger, address)
		}
	}
	all := slices.Concat(owners...)
	slices.Sort(all)
	return slices.Compact(all), nil
}

// socketHolders returns for each inode the processes that have it open, and
// whether some process could not be looked into.
func socketHolders(pids []int, inodes []string) (holders [][]int, hidden bool) {
	holders = make([][]int, len(inodes))
	for _, pid := range pids {
		folder := "/proc/" + strconv.Itoa(pid) + "/fd"
		entries, err := os.ReadDir(folder)
		hidden = hidden || errors.Is(err, fs.ErrPermission)
		for _, entry := range entries {
			target, err := os.Readlink(folder + "/" + entry.Name())
			if err != nil {
				continue
			}
			for i, inode := range inodes {
				if target == "socket:["+inode+"]" && !slices.Contains(holders[i], pid) {
					holders[i] = append(holders[i], pid)
				}
			}
		}
	}
	return holders, hidden
}

// listeningInodes returns the inodes of the sockets among which the kernel
// would choose for a connection to address.
func listeningInodes(network, address string) ([]string, error) {
	if network == "unix" {
		inodes, err := unixInodes(netTables+"unix", address)
		if isHidden(err) {
			return nil, ErrBlind
		}
		return inodes, err
	}
	target, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, err
	}
	found := make(map[netip.Addr][]string)
	read := 0
	for _, table := range tcpTables() {
		// A kernel without IPv6 has no second table.
		switch err := tcpInodes(table, target.Port(), found); {
		case err == nil:
			read++
		case !isHidden(err):
			return nil, err
		}
	}
	if read == 0 {
		return nil, ErrBlind
	}
	for _, addr := range listenPreference(target.Addr()) {
		if len(found[addr]) > 0 {
			return found[addr], nil
		}
	}
	return nil, nil
}

func tcpTables() []string { return []string{netTables + "tcp", netTables + "tcp6"} }

// isHidden reports whether a file cannot be read now or ever: it is not there, or
// not for us.
func isHidden(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)
}

// listenPreference returns the addresses of listeners that are reached at target, in the
// kernel's order of preference: the exact address, also as IPv6, then the wildcards.
func listenPreference(target netip.Addr) []netip.Addr {
	if target.Is4() {
		mapped := netip.AddrFrom16(target.As16())
		return []netip.Addr{target, mapped, netip.IPv4Unspecified(), netip.IPv6Unspecified()}
	}
	return []netip.Addr{target, netip.IPv6Unspecified()}
}

// tcpInodes adds the sockets of a table that listen on port to found, by their
// address.
func tcpInodes(table string, port uint16, found map[netip.Addr][]string) error {
	return tcpListeners(table, func(at netip.AddrPort, inode string) {
		if at.Port() == port {
			found[at.Addr()] = append(found[at.Addr()], inode)
		}
	})
}

// tcpListeners calls each for every listening socket of a table. Columns: slot, local
// address as hex, remote address, state (0A is LISTEN), queues, timer,
// retransmits, user, timeout, inode (proc(5)). Busy hosts have many thousands of
// sockets, of which few listen: only those lines are parsed.
func tcpListeners(table string, each func(at netip.AddrPort, inode string)) error {
	return scanLines(table, func(line []byte) {
		if !bytes.Contains(line, []byte(" 0A ")) {
			return
		}
		fields := strings.Fields(string(line))
		if len(fields) < 10 || fields[3] != "0A" {
			return
		}
		host, port, _ := strings.Cut(fields[1], ":")
		addr, ok := parseHexAddr(host)
		number, err := strconv.ParseUint(port, 16, 16)
		if ok && err == nil {
			each(netip.AddrPortFrom(addr, uint16(number)), fields[9])
		}
	})
}

// ListensOn returns the TCP addresses on which processes of the group listen, sorted: a
// hint why a running worker does not answer. It reads what the kernel shows, for the log
// only.
func (g Group) ListensOn() []string {
	var addresses, inodes []string
	for _, table := range tcpTables() {
		// Without the table there is only less to tell.
		_ = tcpListeners(table, func(at netip.AddrPort, inode string) {
			addresses, inodes = append(addresses, at.String()), append(inodes, inode)
		})
	}
	holders, _ := socketHolders(g.Members(), inodes)
	var own []string
	for i, pids := range holders {
		if len(pids) > 0 {
			own = append(own, addresses[i])
		}
	}
	slices.Sort(own)
	return slices.Compact(own)
}

// SharedAddress returns a TCP address at which several of the groups have sockets of
// their own (SO_REUSEPORT), and these groups; no groups if such an address does not
// exist. It looks into processes only if several sockets listen at one address, and if
// these sockets and the groups have changed since the look with the mark known.
func SharedAddress(groups []Group, known uint64) (address string, sharers []Group, mark uint64) {
	inodes := make(map[string][]string)
	for _, table := range tcpTables() {
		// Without the table there is only less to tell.
		_ = tcpListeners(table, func(at netip.AddrPort, inode string) {
			inodes[at.String()] = append(inodes[at.String()], inode)
		})
	}
	maps.DeleteFunc(inodes, func(_ string, of []string) bool { return len(of) < 2 })
	sum := fnv.New64a()
	fmt.Fprint(sum, groups, inodes) // maps are printed in order
	if mark = sum.Sum64(); len(inodes) == 0 || mark == known {
		return "", nil, mark
	}
	members := make(map[Group][]int)
	eachProcess(func(pid int, group Group) { members[group] = append(members[group], pid) })
	for _, at := range slices.Sorted(maps.Keys(inodes)) {
		sharers = nil
		for _, group := range groups {
			holders, _ := socketHolders(members[group], inodes[at])
			if slices.ContainsFunc(holders, func(pids []int) bool { return len(pids) > 0 }) {
				sharers = append(sharers, group)
			}
		}
		if len(sharers) > 1 {
			return at, sharers, mark
		}
	}
	return "", nil, mark
}

// parseHexAddr reads an address that the kernel printed as 32-bit numbers in
// its own byte order.
func parseHexAddr(text string) (netip.Addr, bool) {
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw)%4 != 0 {
		return netip.Addr{}, false
	}
	for i := 0; i < len(raw); i += 4 {
		binary.NativeEndian.PutUint32(raw[i:], binary.BigEndian.Uint32(raw[i:]))
	}
	return netip.AddrFromSlice(raw)
}

// unixInodes returns the sockets of a table that listen on path. Columns: slot,
// references, protocol, flags (00010000 is "accepts connections"), type, state,
// inode, path (proc(5)).
func unixInodes(table, path string) ([]string, error) {
	var inodes []string
	err := scanLines(table, func(line []byte) {
		if !bytes.HasSuffix(line, []byte(" "+path)) {
			return
		}
		if fields := strings.Fields(string(line)); len(fields) >= 8 && fields[3] == "00010000" {
			inodes = append(inodes, fields[6])
		}
	})
	return inodes, err
}

// scanLines calls each for every line of a file. A line is valid until each returns.
func scanLines(path string, each func(line []byte)) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		each(lines.Bytes())
	}
	return lines.Err()
}
