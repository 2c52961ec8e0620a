package admin

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
)

// Listen opens a TCP listener on address, "host:port" with an empty host for
// every interface and port 0 for one that the system chooses.
//
// Errors: one line that names the address and the flag (with its dashes) that
// changes it; for a taken port also the process that holds it, if that can be
// seen. errors.Is still finds the cause.
func Listen(address, flag string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err == nil {
		return listener, nil
	}
	return nil, explain(address, flag, err)
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
