package podnet

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// rules are those of the kernel that send connections to pods. As nft(8) writes them:
//
//	table ip cabrank {
//	  map pods1 { type integer : ipv4_addr; elements = { 0 : 10.244.0.1, 1 : 10.244.0.2 } }
//	  chain callers {
//	    type nat hook output priority dstnat;
//	    ip daddr 10.96.0.1 tcp dport 8080 dnat to numgen random mod 2 map @pods1
//	  }
//	}
type rules struct {
	made int    // maps so far: each has a name of its own
	pods string // the map that holds, "" for none
}

const (
	table = "cabrank"
	chain = "callers"
	// integer and address are nft(8)'s kinds of keys and values.
	integer, address = 4, 7
	// register is the one of the kernel that expressions hand values on in.
	register = unix.NFT_REG_1
)

func newRules() (*rules, error) {
	const dstnat = -100
	priority := int32(dstnat)
	b := newBatch()
	b.say(unix.NFT_MSG_NEWTABLE, unix.NLM_F_CREATE, text(unix.NFTA_TABLE_NAME, table))
	b.say(unix.NFT_MSG_NEWCHAIN, unix.NLM_F_CREATE,
		text(unix.NFTA_CHAIN_TABLE, table), text(unix.NFTA_CHAIN_NAME, chain), text(unix.NFTA_CHAIN_TYPE, "nat"),
		nested(unix.NFTA_CHAIN_HOOK, number(unix.NFTA_HOOK_HOOKNUM, unix.NF_INET_LOCAL_OUT), number(unix.NFTA_HOOK_PRIORITY, uint32(priority))))
	if err := b.send(); err != nil {
		return nil, fmt.Errorf("nftables: %w", err)
	}
	return &rules{}, nil
}

// set puts a plan in the place of the last one, at once.
func (r *rules) set(p Plan) error {
	pods, err := p.addresses()
	if err != nil {
		return err
	}
	b := newBatch()
	b.say(unix.NFT_MSG_DELRULE, 0, text(unix.NFTA_RULE_TABLE, table), text(unix.NFTA_RULE_CHAIN, chain)) // all of the chain
	if r.pods != "" {
		b.say(unix.NFT_MSG_DELSET, 0, text(unix.NFTA_SET_TABLE, table), text(unix.NFTA_SET_NAME, r.pods))
	}
	next := ""
	if len(pods) > 0 {
		r.made++
		next = fmt.Sprintf("pods%d", r.made)
		b.addMap(next, pods)
		b.say(unix.NFT_MSG_NEWRULE, unix.NLM_F_CREATE|unix.NLM_F_APPEND,
			text(unix.NFTA_RULE_TABLE, table), text(unix.NFTA_RULE_CHAIN, chain),
			nested(unix.NFTA_RULE_EXPRESSIONS, sendTo(next, len(pods), p.Port)...))
	}
	if err := b.send(); err != nil {
		return fmt.Errorf("nftables: %w", err)
	}
	r.pods = next
	return nil
}

// addMap adds a map of numbers from 0 on to addresses.
func (b *batch) addMap(name string, pods []netip.Addr) {
	b.say(unix.NFT_MSG_NEWSET, unix.NLM_F_CREATE,
		text(unix.NFTA_SET_TABLE, table), text(unix.NFTA_SET_NAME, name), number(unix.NFTA_SET_ID, 1), number(unix.NFTA_SET_FLAGS, unix.NFT_SET_MAP),
		number(unix.NFTA_SET_KEY_TYPE, integer), number(unix.NFTA_SET_KEY_LEN, 4),
		number(unix.NFTA_SET_DATA_TYPE, address), number(unix.NFTA_SET_DATA_LEN, 4))
	var elements [][]byte
	for i, pod := range pods {
		elements = append(elements, nested(unix.NFTA_LIST_ELEM,
			value(unix.NFTA_SET_ELEM_KEY, binary.NativeEndian.AppendUint32(nil, uint32(i))),
			value(unix.NFTA_SET_ELEM_DATA, pod.AsSlice())))
	}
	b.say(unix.NFT_MSG_NEWSETELEM, unix.NLM_F_CREATE,
		text(unix.NFTA_SET_ELEM_LIST_TABLE, table), text(unix.NFTA_SET_ELEM_LIST_SET, name),
		nested(unix.NFTA_SET_ELEM_LIST_ELEMENTS, elements...))
}

// value returns an attribute with data in it.
func value(kind int, data []byte) []byte { return nested(kind, attribute(unix.NFTA_DATA_VALUE, data)) }

// sendTo is the rule: TCP to the Service gets one of n addresses.
func sendTo(pods string, n int, port uint16) [][]byte {
	service := netip.MustParseAddr(Service)
	return [][]byte{
		payload(unix.NFT_PAYLOAD_NETWORK_HEADER, 16, 4), // RFC 791: the destination
		equal(service.AsSlice()),
		expression("meta", number(unix.NFTA_META_KEY, unix.NFT_META_L4PROTO), number(unix.NFTA_META_DREG, register)),
		equal([]byte{unix.IPPROTO_TCP}),
		payload(unix.NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2), // its port
		equal(binary.BigEndian.AppendUint16(nil, port)),
		expression("numgen", number(unix.NFTA_NG_DREG, register), number(unix.NFTA_NG_MODULUS, uint32(n)), number(unix.NFTA_NG_TYPE, unix.NFT_NG_RANDOM)),
		expression("lookup", number(unix.NFTA_LOOKUP_SREG, register), number(unix.NFTA_LOOKUP_DREG, register), text(unix.NFTA_LOOKUP_SET, pods)),
		expression("nat", number(unix.NFTA_NAT_TYPE, unix.NFT_NAT_DNAT), number(unix.NFTA_NAT_FAMILY, unix.NFPROTO_IPV4),
			number(unix.NFTA_NAT_REG_ADDR_MIN, register)),
	}
}

// expression is one step of a rule.
func expression(name string, attributes ...[]byte) []byte {
	return nested(unix.NFTA_LIST_ELEM, text(unix.NFTA_EXPR_NAME, name), nested(unix.NFTA_EXPR_DATA, attributes...))
}

// payload takes bytes of a header.
func payload(header, offset, length uint32) []byte {
	return expression("payload", number(unix.NFTA_PAYLOAD_DREG, register), number(unix.NFTA_PAYLOAD_BASE, header),
		number(unix.NFTA_PAYLOAD_OFFSET, offset), number(unix.NFTA_PAYLOAD_LEN, length))
}

// equal ends the rule for a packet in which what was taken is something else.
func equal(data []byte) []byte {
	return expression("cmp", number(unix.NFTA_CMP_SREG, register), number(unix.NFTA_CMP_OP, unix.NFT_CMP_EQ), value(unix.NFTA_CMP_DATA, data))
}
