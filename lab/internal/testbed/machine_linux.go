package testbed

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/rpc"
	"net/rpc/jsonrpc"
	"os"
	"sync"
	"syscall"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
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

// rules are those of the kernel that send connections to pods. As nft(8) writes them:
//
//	table ip cabrank {
//	  chain callers {
//	    type nat hook output priority dstnat;
//	    ip daddr 10.96.0.1 tcp dport 8080 dnat to numgen random mod 2 map { 0 : 10.244.0.1, 1 : 10.244.0.2 }
//	  }
//	}
type rules struct {
	conn  *nftables.Conn
	table *nftables.Table
	chain *nftables.Chain
}

func newRules() (*rules, error) {
	conn, err := nftables.New()
	if err != nil {
		return nil, fmt.Errorf("nftables: %w", err)
	}
	r := &rules{conn: conn, table: conn.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "cabrank"})}
	r.chain = conn.AddChain(&nftables.Chain{
		Table: r.table, Name: "callers", Type: nftables.ChainTypeNAT,
		Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityNATDest,
	})
	if err := conn.Flush(); err != nil {
		return nil, fmt.Errorf("nftables: %w", err)
	}
	return r, nil
}

// set puts a plan in the place of the last one, at once.
func (r *rules) set(p PodPlan) error {
	if len(p.Pods) > mostPods {
		return fmt.Errorf("%d pods: want %d at most", len(p.Pods), mostPods)
	}
	r.conn.FlushChain(r.chain) // a map without a name goes with its rule
	if len(p.Pods) > 0 {
		all := &nftables.Set{Table: r.table, Anonymous: true, Constant: true, IsMap: true, KeyType: nftables.TypeInteger, DataType: nftables.TypeIPAddr}
		var elements []nftables.SetElement
		for i, pod := range p.Pods {
			elements = append(elements, nftables.SetElement{Key: binary.NativeEndian.AppendUint32(nil, uint32(i)), Val: pod.AsSlice()})
		}
		if err := r.conn.AddSet(all, elements); err != nil {
			return fmt.Errorf("nftables: %w", err)
		}
		r.conn.AddRule(&nftables.Rule{Table: r.table, Chain: r.chain, Exprs: sendTo(all, len(p.Pods), p.Port)})
	}
	if err := r.conn.Flush(); err != nil {
		return fmt.Errorf("nftables: %w", err)
	}
	return nil
}

// sendTo is the rule: TCP to the Service gets one of n addresses.
func sendTo(pods *nftables.Set, n int, port uint16) []expr.Any {
	const register = unix.NFT_REG_1
	service := netip.MustParseAddr(Service)
	equal := func(data []byte) expr.Any { return &expr.Cmp{Op: expr.CmpOpEq, Register: register, Data: data} }
	return []expr.Any{
		&expr.Payload{DestRegister: register, Base: expr.PayloadBaseNetworkHeader, Offset: 16, Len: 4}, // RFC 791: the destination
		equal(service.AsSlice()),
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: register},
		equal([]byte{unix.IPPROTO_TCP}),
		&expr.Payload{DestRegister: register, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2}, // its port
		equal(binary.BigEndian.AppendUint16(nil, port)),
		&expr.Numgen{Register: register, Modulus: uint32(n), Type: unix.NFT_NG_RANDOM},
		&expr.Lookup{SourceRegister: register, DestRegister: register, IsDestRegSet: true, SetName: pods.Name, SetID: pods.ID},
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: unix.NFPROTO_IPV4, RegAddrMin: register},
	}
}

// ownNetwork starts a process in a network namespace of its own and, for whom is not
// root, in a user namespace where it is.
func ownNetwork(attr *syscall.SysProcAttr) error {
	attr.Cloneflags = syscall.CLONE_NEWNET
	if uid := os.Getuid(); uid != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	return nil
}

// LoopbackUp does what `ip link set lo up` does.
func LoopbackUp() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(lo)
}

// enoughFiles lets a process hold 10,000 connections on either side.
const enoughFiles = 24_000

// RaiseFiles raises the limit of open files for this process and those that it
// starts, as far as it may, and returns it.
func RaiseFiles() (uint64, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, err
	}
	// Set it even if it is high enough: Go has raised its own and gives children
	// the old one, unless somebody sets it.
	wanted := max(limit.Max, enoughFiles)
	err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: wanted, Max: wanted})
	if err == nil {
		return wanted, nil
	}
	limit.Cur = limit.Max // above it only root may
	return limit.Max, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
}
