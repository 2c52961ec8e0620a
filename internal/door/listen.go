package door

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Listen opens a TCP listener on address, "host:port" with an empty host for
// every interface and port 0 for one that the system chooses. 0.0.0.0 is every
// interface of IPv4 alone.
//
// Errors: one line that names the address and the flag (with its dashes) that
// changes it; for a taken port also the process that holds it, if that can be
// seen. errors.Is still finds the cause.
func Listen(address, flag string) (net.Listener, error) {
	return listen(net.ListenConfig{}, address, flag)
}

// ListenShared is Listen for an address that several processes of one user
// listen on at the same time (SO_REUSEPORT): the kernel deals connections out.
// All of them must have asked for it.
func ListenShared(address, flag string) (net.Listener, error) {
	how := net.ListenConfig{Control: share}
	how.SetMultipathTCP(false) // its sockets take no filter, see Shared
	return listen(how, address, flag)
}

func listen(how net.ListenConfig, address, flag string) (net.Listener, error) {
	// The context bounds the lookup of a host name, which the resolver does.
	listener, err := how.Listen(context.Background(), networkOf(address), address)
	if err == nil {
		return listener, nil
	}
	return nil, explain(address, flag, err)
}

// Missed returns the addresses of this machine that the name in address has, too, and on
// which on does not listen: net takes one of them. Callers that go by the name may try
// another one first.
func Missed(address string, on net.Listener) []string {
	host, _, _ := net.SplitHostPort(address) // Listen has taken it
	if _, err := netip.ParseAddr(host); err == nil || host == "" {
		return nil
	}
	all, _ := net.DefaultResolver.LookupNetIP(context.Background(), "ip", host) // Listen has found it
	return missed(all, on.Addr())
}

func missed(all []netip.Addr, on net.Addr) (others []string) {
	own, _ := netip.ParseAddrPort(on.String()) // of TCP
	for _, ip := range all {
		if ip.Unmap() == own.Addr().Unmap() {
			continue
		}
		if could, err := net.Listen("tcp", net.JoinHostPort(ip.String(), "0")); err == nil { // the machine has it
			_ = could.Close()
			others = append(others, ip.String())
		}
	}
	return others
}

// networkOf keeps what was asked for by an address of IPv4 to that: net takes
// 0.0.0.0 for every interface of both families.
func networkOf(address string) string {
	host, _, _ := net.SplitHostPort(address) // Listen says what is wrong with it
	if ip, err := netip.ParseAddr(host); err == nil && ip.Is4() {
		return "tcp4"
	}
	return "tcp"
}

// share sets SO_REUSEPORT before the socket is bound.
func share(_, _ string, raw syscall.RawConn) error {
	var failed error
	err := raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	})
	return errors.Join(err, os.NewSyscallError("setsockopt SO_REUSEPORT", failed))
}

// bindError keeps the cause of a failed bind beside a line that helps.
type bindError struct {
	line  string
	cause error
}

func (e *bindError) Error() string { return e.line }
func (e *bindError) Unwrap() error { return e.cause }

func explain(address, flag string, err error) error {
	_, port, _ := net.SplitHostPort(address) // a malformed address has no port to speak of
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		by := "another process"
		if number, numberErr := strconv.Atoi(port); numberErr == nil {
			if holder, seen := PortHolder(number); seen {
				by = holder.String()
			}
		}
		return &bindError{fmt.Sprintf("port %s is taken by %s: end that, or choose another port with %s", port, by, flag), err}
	case errors.Is(err, syscall.EACCES):
		return &bindError{fmt.Sprintf("not allowed to listen on %s: choose a port from 1024 up with %s", address, flag), err}
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return &bindError{fmt.Sprintf("this machine has no address %s: choose another with %s", address, flag), err}
	}
	return &bindError{fmt.Sprintf("cannot listen on %s, see %s: %v", address, flag, cause(err)), err}
}

// cause drops the operation and the address, which the line already has.
func cause(err error) error {
	if operation, ok := errors.AsType[*net.OpError](err); ok {
		return operation.Err
	}
	return err
}
