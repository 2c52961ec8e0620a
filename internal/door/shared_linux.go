package door

import (
	"net"

	"golang.org/x/sys/unix"
)

// Bits of the byte of a TCP header that has the flags (RFC 9293 3.1).
const (
	tcpFlags = 13
	tcpSYN   = 0x02
	tcpACK   = 0x10
)

// ignoreNew attaches a filter to a listening socket that lets everything pass but
// a SYN without ACK. It sees packets from the TCP header on.
// Source: socket(7), SO_ATTACH_FILTER; bpf(4).
func ignoreNew(listener *net.TCPListener) error {
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: tcpFlags},
		{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: tcpSYN | tcpACK},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: tcpSYN, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},          // dropped
		{Code: unix.BPF_RET | unix.BPF_K, K: 0xffffffff}, // passed whole
	}
	raw, err := listener.SyscallConn()
	if err != nil {
		return err
	}
	attach := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &attach)
	})
	if err != nil {
		return err
	}
	return failed
}
