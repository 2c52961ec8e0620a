package relay

import (
	"net/http"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/cabrank/cabrank/internal/callers"
	"github.com/cabrank/cabrank/internal/h2"
)

// fieldsBehind returns those that are no pseudo-header fields.
func fieldsBehind(fields []h2.Field) (texts []string) {
	for _, f := range fields {
		if f.Name[0] != ':' {
			texts = append(texts, f.Name+"="+f.Value)
		}
	}
	return texts
}

// Fields of a door's caller are passed on, without those of its connection and those that
// only doors set. The door's own fields come from the door.
func TestHeaderOfADoor(t *testing.T) {
	gone := []string{
		"X-Cabrank-User", "X-Cabrank-Socket", "X-Cabrank-Client", "Grpc-Timeout", "Grpc-Status", "Grpc-Encoding", "Connect-Timeout-Ms", "Connect-Protocol-Version",
		"Keep-Alive", "Proxy-Connection", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Host", "Content-Length", "Expect",
		"X-Named", "X-Named-Too", "Content-Type",
	}
	sent := http.Header{
		"Connection": {"close, X-Named", "x-named-too"}, "X-Kept": {"1", "2"}, "Authorization": {"Bearer x"}, "X-Forwarded-For": {"1.1.1.1"},
		"X-Cabrank-Hops": {"2"}, "Cookie": {"a=1"},
	}
	for _, name := range gone {
		sent[name] = []string{"forged", "twice"}
	}
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		_, worker := g.pipeWorker("w1", 2)
		var c LocalCall
		claim := request(hello, "x-cabrank-user", "ann", "x-cabrank-socket", "1", "x-cabrank-client", "it")
		head := slices.Grow(headOf(claim...), 1<<10)
		open(t, g.local(callers.Caller{Address: "203.0.113.7"}), &c, LocalRequest{Head: head, Header: sent, End: true})
		worker.WantFields(1, end, append(claim,
			"authorization", "Bearer x", "cookie", "a=1", "x-cabrank-hops", "3", "x-forwarded-for", "1.1.1.1, 203.0.113.7", "x-kept", "1", "x-kept", "2")...)
		c.Close()
	})
}
