package podnet

import (
	"encoding/binary"
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// Attributes and messages are filled up to four bytes, and say how long they are.
func TestBatchIsWhole(t *testing.T) {
	b := newBatch()
	b.say(unix.NFT_MSG_NEWTABLE, unix.NLM_F_CREATE, text(unix.NFTA_TABLE_NAME, "ab"))
	if b.asked != 1 {
		t.Errorf("%d messages are answered", b.asked)
	}
	var lengths []uint32
	for rest := b.packet; len(rest) > 0; {
		n := binary.NativeEndian.Uint32(rest)
		if n < unix.NLMSG_HDRLEN || int(n) > len(rest) {
			t.Fatalf("a message of %d bytes in %x", n, b.packet)
		}
		lengths, rest = append(lengths, n), rest[n:]
	}
	if len(lengths) != 2 || lengths[0] != 20 || lengths[1] != 28 {
		t.Errorf("messages of %d bytes", lengths)
	}
}

// The kernel's answers are counted, and the first that refuses is told.
func TestBatchReadsAnswers(t *testing.T) {
	answer := func(code int32) []byte {
		b := &batch{}
		b.add(unix.NLMSG_ERROR, 0, 0, 0)
		copy(b.packet[unix.NLMSG_HDRLEN:], binary.NativeEndian.AppendUint32(nil, uint32(code)))
		return b.packet
	}
	b := &batch{asked: 3}
	if err := b.read(append(answer(0), answer(0)...)); err != nil || b.asked != 1 {
		t.Errorf("%v, %d more", err, b.asked)
	}
	if err := b.read(answer(-int32(unix.EPERM))); !errors.Is(err, unix.EPERM) {
		t.Errorf("%v", err)
	}
	if err := b.read(answer(0)[:18]); err == nil {
		t.Error("half of an answer is one")
	}
}
