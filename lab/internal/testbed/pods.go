package testbed

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/rpc"
	"net/rpc/jsonrpc"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// Pods is a network that is there.
//
// Life: StartPods; ended by Close. Concurrency: any.
type Pods struct {
	child *Child
	pods  *rpc.Client
	enter []string
}

// StartPods makes a network. command is the process that holds it, which calls ServePods.
//
// Errors: one line that says why there is none.
func StartPods(command []string) (*Pods, error) {
	nsenter, err := exec.LookPath("nsenter")
	if err != nil {
		return nil, fmt.Errorf("%w: install the Debian package util-linux", err)
	}
	child, err := Launch(Program{Command: command, Talk: true, Network: true})
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EINVAL) {
		return nil, fmt.Errorf("no network namespace may be made here (%w): run it as root", err)
	}
	if err != nil {
		return nil, err
	}
	n := &Pods{child: child, pods: jsonrpc.NewClient(ends{child.Out, child.In})}
	n.enter = []string{nsenter, "--target", strconv.Itoa(child.PID()), "--net"}
	if os.Getuid() != 0 {
		n.enter = append(n.enter, "--user", "--preserve-credentials")
	}
	if err := n.Set(PodPlan{}); err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

// Enter is what is put before a command that is to run in the network. It becomes the command.
func (n *Pods) Enter() []string { return append(append([]string(nil), n.enter...), "--") }

// Set says what is behind the Service from now on.
func (n *Pods) Set(p PodPlan) error { return n.call("Pods.Set", p) }

// Ask asks from within whether an address answers.
func (n *Pods) Ask(how, addr string) error { return n.call("Pods.Ask", [2]string{how, addr}) }

func (n *Pods) call(what string, of any) error {
	err := n.pods.Call(what, of, new(bool))
	if err != nil && !errors.As(err, new(rpc.ServerError)) {
		return fmt.Errorf("the network namespace has ended: %w %s", err, strings.TrimSpace(n.child.Said()))
	}
	return err
}

// Close ends the network, when what was started in it has ended.
func (n *Pods) Close() {
	_ = n.pods.Close() // its input: that ends it
	<-n.child.Ended()
}

// ends are a connection made of two pipes.
type ends struct {
	io.ReadCloser
	in io.WriteCloser
}

func (e ends) Write(b []byte) (int, error) { return e.in.Write(b) }
func (e ends) Close() error                { return errors.Join(e.in.Close(), e.ReadCloser.Close()) }

// The addresses. 10.0.0.0/8 is that of clusters, and nobody else is in the namespace.
const (
	node     = "10.0.0.1"  // that from which callers come
	Service  = "10.96.0.1" // the one that stands for all pods
	mostPods = 1000        // how many addresses there are
)

// Pod returns the address of pod i, from 0 on.
func Pod(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 244, byte(i / 250), byte(1 + i%250)}) }

// PodPlan is what is behind the Service.
type PodPlan struct {
	Port uint16 `json:"port"` // that of the Service and of all pods
	// Pods are the addresses, of IPv4, of those that get new connections. Connections that
	// there are stay where they are.
	Pods []netip.Addr `json:"pods"`
}
