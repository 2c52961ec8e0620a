package testbed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/rpc"
	"net/rpc/jsonrpc"
	"sync"

	"github.com/vishvananda/netlink"
)

// ServePods is the body of the process that holds the network, which it begins in: it brings
// that up, and does what is asked for by JSON-RPC on in and out, until in ends. ask finds
// out whether an address answers.
//
// Errors: none; what cannot be done is answered.
func ServePods(in io.ReadCloser, out io.WriteCloser, ask func(ctx context.Context, how, addr string) error) error {
	h := &holder{ask: ask}
	h.rules, h.broken = bringUp()
	server := rpc.NewServer()
	if err := server.RegisterName("Pods", h); err != nil {
		return err
	}
	server.ServeCodec(jsonrpc.NewServerCodec(ends{in, out}))
	return nil
}

// holder answers.
type holder struct {
	ask    func(ctx context.Context, how, addr string) error
	broken error // why there is no network

	mu    sync.Mutex // guards what follows
	rules *rules
}

func (h *holder) Set(p PodPlan, _ *bool) error {
	if h.broken != nil {
		return h.broken
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.rules.set(p)
}

func (h *holder) Ask(what [2]string, _ *bool) error {
	return h.ask(context.Background(), what[0], what[1])
}

// bringUp gives the network its addresses and its rules. It must be one of its own:
// nobody else's is changed.
func bringUp() (*rules, error) {
	if err := alone(); err != nil {
		return nil, err
	}
	if err := LoopbackUp(); err != nil {
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
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	addr, err := netlink.ParseAddr(node + "/8")
	if err != nil {
		return err
	}
	return netlink.AddrAdd(lo, addr)
}
