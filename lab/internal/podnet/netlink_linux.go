package podnet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// A batch for nf_tables is a packet of netlink: messages, each with a header and
// attributes, of which some have attributes in them. The kernel takes all of them or none.
// Source: linux/netlink.h, linux/netfilter/nfnetlink.h, linux/netfilter/nf_tables.h.

// attribute returns an attribute: its length, its kind, and its value filled up to four
// bytes.
func attribute(kind int, value []byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(unix.NLA_HDRLEN+len(value)))
	b = binary.NativeEndian.AppendUint16(b, uint16(kind))
	b = append(b, value...)
	return append(b, make([]byte, -len(b)&(unix.NLA_ALIGNTO-1))...)
}

func text(kind int, value string) []byte { return attribute(kind, append([]byte(value), 0)) }

func number(kind int, value uint32) []byte {
	return attribute(kind, binary.BigEndian.AppendUint32(nil, value))
}

// nested returns an attribute with others in it.
func nested(kind int, inner ...[]byte) []byte {
	return attribute(kind|unix.NLA_F_NESTED, join(inner))
}

func join(parts [][]byte) (all []byte) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// batch is messages that are sent as one.
type batch struct {
	packet []byte
	asked  int // messages so far; each is answered
}

func newBatch() *batch {
	b := &batch{}
	b.add(unix.NFNL_MSG_BATCH_BEGIN, unix.NLM_F_REQUEST, unix.AF_UNSPEC, unix.NFNL_SUBSYS_NFTABLES)
	return b
}

// say adds a message to nf_tables about IPv4.
func (b *batch) say(kind, flags int, attributes ...[]byte) {
	b.asked++
	b.add(unix.NFNL_SUBSYS_NFTABLES<<8|kind, unix.NLM_F_REQUEST|unix.NLM_F_ACK|flags, unix.NFPROTO_IPV4, 0, attributes...)
}

// add adds a message: the header of netlink, that of netfilter, the attributes.
func (b *batch) add(kind, flags int, family byte, resource uint16, attributes ...[]byte) {
	body := append([]byte{family, unix.NFNETLINK_V0}, binary.BigEndian.AppendUint16(nil, resource)...)
	body = append(body, join(attributes)...)
	p := binary.NativeEndian.AppendUint32(b.packet, uint32(unix.NLMSG_HDRLEN+len(body)))
	p = binary.NativeEndian.AppendUint16(p, uint16(kind))
	p = binary.NativeEndian.AppendUint16(p, uint16(flags))
	p = append(p, make([]byte, 8)...) // sequence and port: there is one batch at a time
	b.packet = append(p, body...)
}

// send sends the batch and waits until the kernel has answered all of it.
//
// Errors: the first of the kernel.
func (b *batch) send() error {
	b.add(unix.NFNL_MSG_BATCH_END, unix.NLM_F_REQUEST, unix.AF_UNSPEC, unix.NFNL_SUBSYS_NFTABLES)
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	if err != nil {
		return err
	}
	defer unix.Close(fd) //nolint:errcheck // nothing is left to lose
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: patience}); err != nil {
		return err
	}
	if err := unix.Sendto(fd, b.packet, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 64<<10)
	for b.asked > 0 {
		n, _, err := unix.Recvfrom(fd, answer, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		if err := b.read(answer[:n]); err != nil {
			return err
		}
	}
	return nil
}

// patience is for how many seconds the kernel may be silent: it answers at once.
const patience = 10

// read counts the answers in a packet.
func (b *batch) read(packet []byte) error {
	messages, err := syscall.ParseNetlinkMessage(packet)
	if err != nil {
		return err
	}
	for _, m := range messages {
		if m.Header.Type != unix.NLMSG_ERROR {
			continue
		}
		if len(m.Data) < 4 {
			return errors.New("the kernel answers in a way that is not known")
		}
		b.asked--
		if code := int32(binary.NativeEndian.Uint32(m.Data)); code != 0 {
			return fmt.Errorf("the kernel refuses: %w", syscall.Errno(-code))
		}
	}
	return nil
}
