package relay

import (
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// R15: the pause after a failed dial doubles up to a second, a fifth shorter or
// longer.
func TestDialPause(t *testing.T) {
	var b backOff
	now := time.Hour
	testkit.Want(t, !b.waits(now), "the first attempt waits")
	for _, millis := range []int{20, 40, 80, 160, 320, 640, 1000, 1000, 1000} {
		want := time.Duration(millis) * time.Millisecond
		for random, part := range map[float64]float64{0: 0.8, 0.5: 1, 1: 1.2} {
			after := b
			after.failed(now, random)
			if got := after.until - now; got != time.Duration(float64(want)*part) {
				t.Errorf("pause %v for the random number %v, want %v", got, random, time.Duration(float64(want)*part))
			}
		}
		b.failed(now, 0.5)
		testkit.Want(t, b.waits(b.until-1) && !b.waits(b.until), "it does not last until its end")
		now = b.until
	}
}

// R15: what a user's environment says of proxies does not concern the workers.
func TestNoProxy(t *testing.T) {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY", "GRPC_PROXY"} {
		t.Setenv(name, "http://127.0.0.1:1")
	}
	g := newRig(t)
	_, accept := g.endpoint("elsewhere", 1, false)
	caller := g.caller()
	caller.WriteHeaders(1, end, request(hello)...)
	worker := accept()
	worker.WantHeaders(1, end)
	reply(worker, 1)
	wantReply(caller, 1)
}
