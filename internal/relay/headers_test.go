package relay

import (
	"strconv"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/head"
	"github.com/cabrank/cabrank/internal/testkit"
)

// R12: the length of a list as it leaves, cabrank's own fields included, is
// never more than what it is taken for.
func TestListsAreNotTakenForShorter(t *testing.T) {
	g := newRig(t, func(o *Options) { o.CallTimeout = time.Hour })
	_, accept := g.worker("w1", 9)
	caller := g.caller()
	worker := (*testkit.Peer)(nil)
	for i, more := range [][]string{
		nil, {"x-forwarded-for", "1.2.3.4"}, {"x-forwarded-for", ""}, {"grpc-timeout", "1H"}, {"grpc-timeout", "1H", "x-forwarded-for", "x"},
	} {
		list := request(hello, more...)
		caller.WriteHeaders(uint32(2*i+1), end, list...)
		if worker == nil {
			worker = accept()
		}
		taken := size(list) + head.MaxAdded + len("127.0.0.1")
		f := worker.WantFrame()
		sent := 0
		for _, field := range f.Fields {
			sent += len(field.Name) + len(field.Value) + 32
		}
		testkit.Want(t, sent <= taken, "with %q: %d octets are sent, taken for %d", more, sent, taken)
		reply(worker, f.Stream)
		wantReply(caller, uint32(2*i+1))
	}
}

func size(list []string) (n int) {
	for i := 0; i < len(list); i += 2 {
		n += len(list[i]) + len(list[i+1]) + 32
	}
	return n
}

// A pushback is never more than 32 bits.
func TestLongestPushback(t *testing.T) {
	testkit.Equal(t, string(appendCeil(nil, 1<<62, time.Millisecond)), strconv.Itoa(1<<31-1), "a pushback of centuries")
}
