package podnet

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"

	"golang.org/x/sys/unix"

	"github.com/cabrank/cabrank/lab/internal/testbed"
)

// Serve is the body of the process that holds the network, which it begins in: it brings
// that up, and does what lines of in ask for, one at a time, until in ends. ask finds
// out whether an address answers.
//
// Errors: what is wrong with in or out. What cannot be done is said on out.
func Serve(in io.Reader, out io.Writer, ask func(ctx context.Context, how, addr string) error) error {
	r, broken := bringUp()
	say := json.NewEncoder(out)
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var q request
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			return err
		}
		err := broken
		switch {
		case broken != nil:
		case q.Plan != nil:
			err = r.set(*q.Plan)
		case q.Ask != "":
			err = ask(context.Background(), q.How, q.Ask)
		}
		a := answer{}
		if err != nil {
			a.Error = err.Error()
		}
		if err := say.Encode(a); err != nil {
			return err
		}
	}
	return lines.Err()
}

// maxLine has room for a plan with all pods.
const maxLine = 64 << 10

// bringUp gives the network its addresses and its rules. It must be one of its own:
// nobody else's is changed.
func bringUp() (*rules, error) {
	if err := alone(); err != nil {
		return nil, err
	}
	if err := testbed.LoopbackUp(); err != nil {
		return nil, fmt.Errorf("bring loopback up: %w", err)
	}
	if err := addNode(); err != nil {
		return nil, fmt.Errorf("add the address %s: %w", node, err)
	}
	return newRules()
}

// alone makes sure that there is no way out of here.
func alone() error {
	all, err := net.Interfaces()
	if err != nil {
		return err
	}
	for _, i := range all {
		if i.Flags&net.FlagUp != 0 {
			return errors.New("this is not a network of its own: " + i.Name + " is up")
		}
	}
	return nil
}

// addNode gives loopback an address of 10.0.0.0/8. With it all of these are addresses of
// this network (as all of 127.0.0.0/8 are), without being loopback: those the kernel
// does not let rules send elsewhere.
func addNode() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd) //nolint:errcheck // nothing is left to lose
	second, err := unix.NewIfreq("lo:1")
	if err != nil {
		return err
	}
	if err := second.SetInet4Addr(net.ParseIP(node).To4()); err != nil {
		return err
	}
	return unix.IoctlIfreq(fd, unix.SIOCSIFADDR, second)
}
