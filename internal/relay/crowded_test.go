package relay

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
)

// A connection with as many calls as it may have is told of, once a minute: what
// waits behind them waits in the caller's library.
func TestCrowdedConnectionIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		g := newPipeRig(t, func(o *Options) {
			o.MaxStreams, o.Log = 2, slog.New(slog.NewTextHandler(&log, nil))
		})
		_, worker := g.pipeWorker("w1", 5)
		caller := g.pipeCaller()
		for s := uint32(1); s < 9; s += 4 {
			for _, id := range []uint32{s, s + 2} {
				if strings.Count(log.String(), "as many calls as it may") != int(s/5) {
					t.Errorf("before call %d:\n%s", id, log.String())
				}
				caller.WriteHeaders(id, end, request(hello)...)
				worker.WantHeaders(id, end)
				synctest.Wait()
			}
			for _, id := range []uint32{s, s + 2} {
				reply(worker, id)
				wantReply(caller, id)
			}
			synctest.Wait()
		}
		if n := strings.Count(log.String(), "max_concurrent_streams=2"); n != 1 {
			t.Errorf("%d lines:\n%s", n, log.String())
		}
	})
}
