package relay

import (
	"hash/crc32"
	"math"
	"testing"
	"testing/synctest"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/testkit"
)

func noWindow() http2.Setting {
	return http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}
}

// pour sends DATA on a stream for as long as credit comes, and returns how many
// bytes were sent in all. It needs a synctest bubble.
func pour(p *testkit.Peer, stream uint32, sent int64) int64 {
	return pourUpTo(p, stream, sent, math.MaxInt64)
}

// pourUpTo is pour for so many bytes in all.
func pourUpTo(p *testkit.Peer, stream uint32, sent, most int64) int64 {
	for sent < most {
		synctest.Wait()
		room := min(streamWindow+p.Credit(stream)-sent, 16<<10, most-sent)
		if room == 0 {
			break
		}
		p.WriteData(stream, noEnd, make([]byte, room))
		sent += room
	}
	return sent
}

// A message of 64 MiB passes both ways, within bounded memory.
func TestLargeMessage(t *testing.T) {
	g := newRig(t)
	_, accept := g.worker("w1", 1)
	caller := g.caller()
	caller.Refill()
	caller.AnyOrder()
	caller.WriteHeaders(1, noEnd, request(hello)...)
	worker := accept()
	worker.Refill()
	worker.AnyOrder()
	worker.WantHeaders(1, noEnd)
	body := make([]byte, 64<<20)
	for i := range body {
		body[i] = byte(i * 7 / 3)
	}
	sum := crc32.ChecksumIEEE(body)
	through := func(from, to *testkit.Peer) {
		t.Helper()
		sent := make(chan struct{})
		go func() { // ends with its last byte
			defer close(sent)
			from.WriteBody(1, end, body)
		}()
		got, size, most := uint32(0), 0, int64(0)
		for ended := false; !ended; {
			f := to.WantFrame()
			if f.Kind == testkit.Data {
				got, size, ended = crc32.Update(got, crc32.IEEETable, f.Payload), size+len(f.Payload), f.End
			}
			most = max(most, g.budget.Used())
		}
		<-sent
		if got != sum || size != len(body) {
			t.Errorf("%d of %d bytes, checksum %08x, want %08x", size, len(body), got, sum)
		}
		if most > 8<<20 {
			t.Errorf("at most %d bytes were in use", most)
		}
	}
	through(caller, worker)
	worker.WriteHeaders(1, noEnd, responseHead()...)
	caller.WantFields(1, noEnd, responseHead()...)
	through(worker, caller)
}
