package testbed

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

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
